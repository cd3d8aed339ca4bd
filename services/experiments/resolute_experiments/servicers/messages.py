"""Rows as messages of the contract."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from resolute.api.experiments.v1 import experiment_pb2
from resolute.api.preemption.v1 import signal_pb2
from resolute.contracts.times import to_timestamp
from resolute.contracts.values import to_value
from resolute_experiments.states import ALLOCATED_TRIALS, ExperimentState, TrialState
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.runs import Container, Run
from resolute_experiments.store.trials import Trial


def timestamp(seconds: float | None) -> Timestamp | None:
    """Unix seconds as a message; None stays None."""
    return None if seconds is None else to_timestamp(seconds)


def experiment_message(
    experiment: Experiment, counts: dict[str, int], *, with_config: bool, explanation: str = ""
) -> experiment_pb2.Experiment:
    """Builds an experiment's message.

    Args:
        experiment: The row.
        counts: Its trials by state.
        with_config: Whether the config is included.
        explanation: Why the first of its waiting trials waits.
    """
    searcher = experiment.config["searcher"]
    return experiment_pb2.Experiment(
        experiment_id=experiment.id,
        number=experiment.number,
        name=experiment.name,
        description=experiment.description,
        labels=experiment.labels,
        state=experiment_pb2.ExperimentState.Value(f"EXPERIMENT_STATE_{experiment.state.value}"),
        activity=_activity(experiment, counts),
        archived=experiment.archived,
        owner=experiment.owner,
        workspace=experiment.workspace,
        project=experiment.project,
        progress=experiment.progress,
        config=to_value(experiment.config) if with_config else None,
        create_time=timestamp(experiment.created_at),
        end_time=timestamp(experiment.ended_at),
        trial_count=sum(counts.values()),
        searcher_name=searcher["name"],
        searcher_metric=searcher.get("metric") or "",
        smaller_is_better=searcher["smaller_is_better"],
        failure=experiment.failure,
        revision=experiment.revision,
        model_definition_size=experiment.definition_size,
        unmanaged=experiment.unmanaged,
        external_id=experiment.external_id or "",
        explanation=explanation,
    )


def _activity(experiment: Experiment, counts: dict[str, int]) -> str:
    if experiment.state is ExperimentState.PAUSED:
        return "PAUSING" if any(counts.get(state.value) for state in ALLOCATED_TRIALS) else ""
    if experiment.state is not ExperimentState.ACTIVE:
        return ""
    for state in (TrialState.RUNNING, TrialState.STARTING, TrialState.STOPPING):
        if counts.get(state.value):
            return str(state.value)
    return str(TrialState.QUEUED.value)


def trial_message(
    trial: Trial,
    experiment: Experiment,
    *,
    explanation: str,
    runs: list[Run] | None = None,
    containers: list[Container] | None = None,
) -> experiment_pb2.Trial:
    """Builds a trial's message; with its runs and processes if they are given.

    Args:
        trial: The row.
        experiment: Its experiment.
        explanation: Why it waits, or how its last run ended.
        runs: Its runs.
        containers: The containers of the last one.
    """
    return experiment_pb2.Trial(
        trial_id=trial.id,
        number=trial.number,
        experiment_id=trial.experiment_id,
        experiment_number=experiment.number,
        request_id=trial.request_id,
        state=experiment_pb2.TrialState.Value(f"TRIAL_STATE_{trial.state.value}"),
        hparams=to_value(trial.hparams),
        trial_seed=trial.seed,
        restarts=trial.restarts,
        run=trial.run,
        status=trial.status,
        metadata=to_value(trial.metadata),
        explanation=explanation,
        latest_checkpoint_id=trial.latest_checkpoint_id,
        steps_completed=trial.steps_completed,
        create_time=timestamp(trial.created_at),
        end_time=timestamp(trial.ended_at),
        revision=trial.revision,
        excluded_nodes=trial.excluded_nodes,
        runs=[_run_message(run) for run in runs or []],
        pids=[container.pid for container in containers or [] if container.pid and not container.exited],
    )


def _run_message(run: Run) -> experiment_pb2.Run:
    return experiment_pb2.Run(
        run=run.run,
        allocation_id=run.allocation_id,
        outcome=experiment_pb2.RunOutcome.Value(f"RUN_OUTCOME_{run.outcome.value}"),
        exit_code=run.exit_code,
        start_time=timestamp(run.started_at),
        end_time=timestamp(run.ended_at),
        slot_ids=run.slot_ids,
        failure=run.failure,
        log_policies=run.log_policies,
    )


def signal_message(run: Run) -> signal_pb2.Signal:
    """Builds the signal of a run's allocation."""
    return signal_pb2.Signal(
        allocation_id=run.allocation_id,
        revision=run.signal_revision,
        preempt=run.preempt,
        kill=run.kill,
        reason=signal_pb2.SignalReason.Value(f"SIGNAL_REASON_{run.signal_reason or 'UNSPECIFIED'}"),
        kill_time=timestamp(run.signal_deadline),
    )
