"""Experiments that continue after their end, as changes of the database, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, Store
from sqlalchemy.engine import Connection
from support.databases.prepared import migrate

from resolute.api.searcher.v1 import action_pb2, reason_pb2
from resolute.errors import FailedPreconditionError, IllegalTransitionError, InvalidConfigError
from resolute_experiments.accounts.store import projects, workspaces
from resolute_experiments.continuation import planning
from resolute_experiments.continuation.planning import Plan
from resolute_experiments.lifecycle import actions, commands
from resolute_experiments.lifecycle.action_inputs import ActionInputs, LatestCheckpoint
from resolute_experiments.states import ExperimentState, RunOutcome, TrialState
from resolute_experiments.store import continuations, experiments, runs, trials
from resolute_experiments.store.schema import experiments as table
from resolute_serving.database.engine import create_engine

REQUEST = "8d0a6a8e-55d0-4d7c-8a39-0d2a3a1f4f11"
CONFIG: dict[str, Any] = {
    "name": "digits",
    "description": None,
    "labels": [],
    "max_restarts": 5,
    "hyperparameters": {"x": 1},
    "searcher": {"name": "random", "max_trials": 4, "max_length": {"batches": 100}},
    "resources": {"slots_per_trial": 1, "max_slots": None},
}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    made = Store(engine)
    made.run(lambda c: experiments.update(c, made.experiment_id, config=CONFIG))
    yield made
    engine.dispose()


def be(store: Store, state: ExperimentState) -> None:
    store.run(lambda c: c.execute(sa.update(table).values(state=state.value, revision=table.c.revision + 1)))


def ended_trial(store: Store, state: TrialState, **values: Any) -> str:
    trial_id = store.create_trial()

    def work(connection: Connection) -> None:
        trial = trials.get(connection, trial_id=trial_id)
        trials.update(connection, trial, **{"state": state.value, "ended_at": 5.0, "run": 1} | values)

    store.run(work)
    return trial_id


def refused_trial(store: Store, *, explanation: str) -> None:
    trial_id = ended_trial(store, TrialState.COMPLETED, explanation=explanation, run=0)
    run = store.start(trial_id, TrialState.COMPLETED)
    store.run(lambda c: runs.update(c, run.allocation_id, outcome=RunOutcome.INVALID_HP.value))


def planned(store: Store, **searcher: Any) -> Plan:
    config = {**CONFIG, "searcher": {**CONFIG["searcher"], **searcher}}

    def work(connection: Connection) -> Plan:
        experiment = experiments.get(connection, experiment_id=store.experiment_id)
        return planning.plan(experiment, config, trials.of_experiment(connection, experiment.id))

    return store.run(work)


def reopen(
    store: Store, trial_id: str, *, length: int, newest: dict[str, LatestCheckpoint] | None = None
) -> None:
    store.sequence += 1
    run = action_pb2.Action.RunTrial(trial_id=trial_id, length=length, reopens=True)
    action = action_pb2.Action(sequence=store.sequence, run_trial=run)
    answers = ActionInputs(newest=newest or {})
    store.run(lambda c: actions.apply(c, store.experiment_id, [action], NOW, answers))


@pytest.mark.parametrize(
    ("state", "retried"),
    [
        (ExperimentState.COMPLETED, [TrialState.ERROR]),
        (ExperimentState.PAUSED, [TrialState.ERROR]),
        (ExperimentState.CANCELED, [TrialState.CANCELED, TrialState.ERROR]),
        (ExperimentState.ERROR, [TrialState.CANCELED, TrialState.ERROR]),
    ],
)
def test_who_failed_goes_on_and_whoever_was_cancelled_with_the_whole(
    store: Store, state: ExperimentState, retried: list[TrialState]
) -> None:
    for ended in (TrialState.COMPLETED, TrialState.CANCELED, TrialState.ERROR):
        ended_trial(store, ended)
    be(store, state)
    assert [trial.state for trial in planned(store).trials] == retried


def test_a_search_gets_what_grew(store: Store) -> None:
    be(store, ExperimentState.COMPLETED)
    plan = planned(store, max_trials=6, max_length={"batches": 300})
    assert (plan.max_trials, plan.max_length) == (6, 300)
    assert plan.changed == ("searcher.max_length.batches", "searcher.max_trials")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_trials": 3}, "more than the 4"),
        ({"max_length": {"batches": 50}}, "more than the 100"),
        ({"max_length": {"epochs": 500}}, "a length in batches"),
        ({"max_length": None}, "cannot be added or removed"),
        ({"name": "grid"}, "searcher.name: it cannot change"),
    ],
)
def test_what_decided_cannot_change(store: Store, changes: dict[str, Any], message: str) -> None:
    be(store, ExperimentState.COMPLETED)
    with pytest.raises(InvalidConfigError, match=message):
        planned(store, **changes)


def test_nothing_to_go_on_with_is_an_error(store: Store) -> None:
    ended_trial(store, TrialState.COMPLETED)
    be(store, ExperimentState.COMPLETED)
    with pytest.raises(FailedPreconditionError, match="none of its trials failed"):
        planned(store)
    be(store, ExperimentState.PAUSED)
    with pytest.raises(FailedPreconditionError, match="under way"):
        planned(store, max_trials=9)
    be(store, ExperimentState.STOPPING_CANCELED)
    with pytest.raises(IllegalTransitionError, match="wait until it has ended"):
        planned(store)


def test_what_is_asked_is_noted_with_the_state_that_it_may_go_back_to(store: Store) -> None:
    failed = ended_trial(store, TrialState.ERROR)
    be(store, ExperimentState.ERROR)
    plan = planned(store, max_trials=6)

    def work(connection: Connection) -> None:
        experiment = experiments.get(connection, experiment_id=store.experiment_id)
        workspaces.create(connection, experiment.workspace, owner="ada", now=1.0)
        projects.create(
            connection,
            experiment.workspace,
            experiment.project,
            description="",
            notes="",
            owner="ada",
            now=1.0,
        )
        planning.begin(connection, experiment, plan, continuation_id=REQUEST, timing=NOW)

    store.run(work)
    after = store.experiment()
    assert (after.state, after.failure, after.ended_at) == (ExperimentState.ACTIVE, "", None)
    assert after.config["searcher"]["max_trials"] == 6
    (noted,) = store.run(lambda c: continuations.pending(c, store.experiment_id))
    assert (noted.previous_state, noted.max_trials, noted.trial_ids) == (ExperimentState.ERROR, 6, (failed,))
    assert store.run(lambda c: continuations.get(c, REQUEST)) == noted
    store.run(lambda c: continuations.finish(c, REQUEST))
    assert store.run(lambda c: continuations.pending(c, store.experiment_id)) == []


def test_a_trial_goes_on_from_the_newest_checkpoint_that_is_still_there(store: Store) -> None:
    trial_id = ended_trial(store, TrialState.ERROR, restarts=5, closed=True, latest_checkpoint_id="gone")
    reopen(store, trial_id, length=100, newest={trial_id: LatestCheckpoint("kept", 40)})
    trial = store.trial(trial_id)
    assert (trial.state, trial.life, trial.restarts, trial.closed) == (TrialState.QUEUED, 1, 0, False)
    assert (trial.latest_checkpoint_id, trial.steps_completed, trial.ended_at) == ("kept", 40, None)


def test_a_trial_whose_checkpoints_are_gone_begins_anew(store: Store) -> None:
    trial_id = ended_trial(store, TrialState.ERROR, latest_checkpoint_id="gone", steps_completed=40)
    reopen(store, trial_id, length=100)
    trial = store.trial(trial_id)
    assert (trial.latest_checkpoint_id, trial.steps_completed) == ("", 0)


def test_a_trial_that_had_done_what_was_asked_rests_again(store: Store) -> None:
    trial_id = ended_trial(store, TrialState.CANCELED, settled_length=100)
    reopen(store, trial_id, length=100)
    assert store.trial(trial_id).state is TrialState.WAITING


def test_the_second_end_of_a_trial_is_another_event(store: Store) -> None:
    trial_id = store.create_trial()
    for life in (0, 1):
        store.run(lambda c: commands.kill_trial(c, trials.get(c, trial_id=trial_id), NOW))
        assert f"{trial_id}/{life}.0/ended" in [message.event_id for message in store.messages()]
        reopen(store, trial_id, length=100)


def test_a_late_run_action_brings_no_killed_trial_back(store: Store) -> None:
    trial_id = ended_trial(store, TrialState.CANCELED)
    store.act(run_trial=action_pb2.Action.RunTrial(trial_id=trial_id, length=100))
    assert store.trial(trial_id).state is TrialState.CANCELED


def test_what_a_search_decides_while_its_experiment_stops_waits(store: Store) -> None:
    store.create_trial()
    store.change(commands.cancel)
    create = action_pb2.Action.CreateTrial(trial_key=str(uuid.uuid4()), trial_id=str(uuid.uuid4()))
    later = action_pb2.Action(sequence=2, create_trial=create)
    apply = lambda c: actions.apply(c, store.experiment_id, [later], NOW, ActionInputs())  # noqa: E731
    assert store.run(apply) == 1
    be(store, ExperimentState.ACTIVE)
    assert store.run(apply) == 2
    assert store.trial(create.trial_id).state is TrialState.QUEUED


def test_a_shutdown_before_the_last_action_is_void(store: Store) -> None:
    shutdown = action_pb2.Action(sequence=1, shutdown=action_pb2.Action.Shutdown())
    void = ActionInputs(last_action=2)
    assert store.run(lambda c: actions.apply(c, store.experiment_id, [shutdown], NOW, void)) == 1
    assert store.experiment().state is ExperimentState.ACTIVE


def test_a_shutdown_ends_the_trials_that_the_search_left_open(store: Store) -> None:
    running, queued = store.create_trial(), store.create_trial()
    store.start(running)
    store.act(shutdown=action_pb2.Action.Shutdown())
    assert store.experiment().state is ExperimentState.STOPPING_COMPLETED
    assert store.trial(queued).state is TrialState.CANCELED
    assert (store.signal(running).preempt, store.signal(running).signal_reason) == (True, "SEARCH")


def test_a_search_that_failed_says_where_to_look(store: Store) -> None:
    ended_trial(store, TrialState.ERROR)
    store.act(shutdown=action_pb2.Action.Shutdown(failure=True))
    assert store.experiment().failure == "every trial failed; `resolute trial describe 1` shows why"
    assert store.experiment().progress == 0.25


def test_a_search_that_failed_says_what_ended_its_first_trial(store: Store) -> None:
    ended_trial(store, TrialState.ERROR, explanation="failed: ValueError: bad")
    ended_trial(store, TrialState.ERROR, explanation="failed: KeyError: 3")
    store.act(shutdown=action_pb2.Action.Shutdown(failure=True))
    assert store.experiment().failure == "every trial failed; trial 1 failed: ValueError: bad"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("refused its hyperparameters: too deep", "refused its hyperparameters: too deep"),
        ("", "refused its hyperparameters; `resolute trial logs 2` has why"),
    ],
)
def test_a_search_that_was_refused_too_often_says_how_often_and_what_was_said_last(
    store: Store, said: str, shown: str
) -> None:
    refused_trial(store, explanation="refused its hyperparameters: too wide")
    refused_trial(store, explanation=said)
    ended_trial(store, TrialState.COMPLETED, explanation="completed beside them")
    reason = reason_pb2.Reason(kind=reason_pb2.REASON_KIND_TOO_MANY_REFUSED)
    store.act(shutdown=action_pb2.Action.Shutdown(failure=True), reason=reason)
    assert store.experiment().failure == (
        f"50 sets of hyperparameters in a row were refused; the last: trial 2 {shown}"
    )
