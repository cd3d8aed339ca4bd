"""What `resolute explain` tells of recorded decisions and changes of states."""

from __future__ import annotations

import json

from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import job_pb2, trial_pb2, trial_transition_pb2
from resolute.api.preemption.v1 import signal_pb2
from resolute.api.searcher.v1 import event_pb2, operation_pb2, reason_pb2

OURS, OTHERS = "0b9c6c1e-2f4e-4f7b-9f53-3d4f6c9a1b2d", "7d3c8f60-13a5-4f6e-8d1b-5a5be2f0c111"


def searched(cluster: ScriptedCluster) -> None:
    """Trial 1 is stopped on its rung by the report of trial 2."""
    state = cluster.state
    experiment = state.add_experiment(progress=0.25, config={"searcher": {"max_trials": 9}})
    experiment.create_time.FromSeconds(1_700_000_000)
    ended = state.add_trial(experiment, trial_key=OURS, state=trial_pb2.TRIAL_STATE_COMPLETED)
    ended.end_time.FromSeconds(1_700_000_100)
    state.add_trial(
        experiment,
        trial_key=OTHERS,
        state=trial_pb2.TRIAL_STATE_QUEUED,
        explanation="needs 1 slot, 0 of 2 are free",
    )
    created = event_pb2.LogEntry(event=event_pb2.Event(sequence=1, started=event_pb2.Event.Started()))
    created.operations.add(
        create=operation_pb2.Operation.Create(trial_key=OURS),
        reason=reason_pb2.Reason(kind=reason_pb2.REASON_KIND_INITIAL_TRIAL, bracket=1),
    )
    report = event_pb2.Event.ValidationCompleted(trial_key=OTHERS, metric=0.95, length=4)
    stopped = event_pb2.LogEntry(event=event_pb2.Event(sequence=7, validation_completed=report))
    stopped.event.append_time.FromSeconds(1_700_000_090)
    stopped.operations.add(
        close=operation_pb2.Operation.Close(trial_key=OURS),
        reason=reason_pb2.Reason(
            kind=reason_pb2.REASON_KIND_BELOW_TOP_OF_RUNG,
            bracket=1,
            rung=2,
            rank=7,
            rank_of=9,
            metric=0.871,
            threshold=0.9,
            top_size=2,
        ),
    )
    state.entries += [created, stopped]
    preempted = trial_transition_pb2.TrialTransition(
        event="PREEMPT",
        from_state=trial_pb2.TRIAL_STATE_RUNNING,
        to_state=trial_pb2.TRIAL_STATE_STOPPING,
        run=1,
        signal_reason=signal_pb2.SIGNAL_REASON_SCHEDULER,
        detail="makes room for trial 2, which is more urgent",
    )
    preempted.time.FromSeconds(1_700_000_050)
    state.transitions.append(preempted)
    state.jobs.append(job_pb2.Job(experiment_number=1, held_slots=1, queued_trials=1, priority=42))


def test_a_stopped_trial_tells_the_numbers_and_the_report_that_decided(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    searched(cluster)
    text = resolute("explain", "trial", "1").out
    assert "it is one of the trials that the search begins with" in text
    assert (
        "it is not among the best: 0.871 was 7th of 9 on rung 2 of bracket 1; the best 2 go on, the last of "
        "them with 0.9; decided by the report of trial 2: 0.95 at length 4" in text
    )
    assert "asked to checkpoint and exit; the scheduler needs the slots; makes room for trial 2" in text
    found = json.loads(resolute("explain", "t", "1", "--json").out)
    (_, close) = found["decisions"]
    assert close["kind"] == "close"
    assert close["event"]["trial"] == 2
    assert close["reason"]["rank"] == 7
    assert close["reason"]["top_size"] == 2
    assert found["transitions"][0]["signal_reason"] == "SCHEDULER"


def test_a_paused_trial_names_who_paused_it_and_a_waiting_one_what_it_waits_for(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    searched(cluster)
    assert "needs 1 slot, 0 of 2 are free" in resolute("explain", "trial", "2").out
    cluster.state.trials[1].state = trial_pb2.TRIAL_STATE_PAUSED
    cluster.state.trials[1].explanation = ""
    cluster.state.transitions.append(trial_transition_pb2.TrialTransition(event="PAUSE", actor_name="grace"))
    assert "the experiment was paused by grace" in resolute("explain", "trial", "2").out


def test_an_experiment_tells_what_comes_and_when_it_ends(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    searched(cluster)
    text = resolute("explain", "experiment", "1").out
    for expected in (
        "2 created, 1 closed",
        "Trials to come",
        "holds 1, 1 trials wait, priority 42",
        "if it goes on at its pace so far",
        "no more work for trial 1",
        "trains to length 4",
        "needs 1 slot, 0 of 2 are free",
    ):
        assert expected in text
    found = json.loads(resolute("explain", "exp", "1", "--json").out)
    assert found["trials_to_come"] == 7
    assert [one["trial"] for one in found["open_trials"]] == [2]
