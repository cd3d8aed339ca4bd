"""What people ask of experiments and what searches decide, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.engine import Connection, Engine
from support.databases.prepared import migrate

from resolute.api.experiments.v1.experiments_service_pb2 import ListExperimentsRequest
from resolute.api.searcher.v1 import action_pb2
from resolute.contracts.times import seconds_of
from resolute.contracts.values import to_value
from resolute.errors import IllegalTransitionError, NotFoundError
from resolute_experiments.accounts.store import users
from resolute_experiments.accounts.store.workspaces import Workspace
from resolute_experiments.exits.policy import Decision, Exit
from resolute_experiments.exits.recording import Evidence, SealResult, record_container_exit, record_run_exit
from resolute_experiments.lifecycle import actions, commands
from resolute_experiments.lifecycle.action_inputs import ActionInputs
from resolute_experiments.scheduling.pending_trials import pending_trials
from resolute_experiments.specs.launch import LaunchParameters, launch_spec
from resolute_experiments.states import ExperimentState, RunEvent, RunOutcome, TrialEvent, TrialState
from resolute_experiments.store import experiments, outbox, runs, trials
from resolute_experiments.store.schema import audit, metadata
from resolute_experiments.timing import Timing
from resolute_experiments.transitions.signals import allocation_id
from resolute_serving.context import Role, User
from resolute_serving.database.engine import create_engine

T = TypeVar("T")
NOW = Timing(now=1000.0, preemption_timeout=60.0)
NOTHING_SEALED = SealResult(
    operation_length=0,
    operation_completed=False,
    operation_closed=False,
    checkpoint_id="",
    steps_completed=0,
)


class Store:
    """One migrated database with one experiment."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.experiment_id = str(uuid.uuid4())
        self.sequence = 0
        self.run(lambda c: experiments.insert(c, experiment_row(self.experiment_id), b"code"))

    def run(self, work: Callable[[Connection], T]) -> T:
        with self.engine.begin() as connection:
            return work(connection)

    def experiment(self) -> experiments.Experiment:
        return self.run(lambda c: experiments.get(c, experiment_id=self.experiment_id))

    def change(self, change: Callable[[Connection, experiments.Experiment, Timing], Any]) -> None:
        self.run(lambda c: change(c, experiments.get(c, experiment_id=self.experiment_id), NOW))

    def act(self, **kind: Any) -> None:
        self.sequence += 1
        action = action_pb2.Action(sequence=self.sequence, **kind)
        self.run(lambda c: actions.apply(c, self.experiment_id, [action], NOW, ActionInputs()))

    def create_trial(self) -> str:
        trial_id = str(uuid.uuid4())
        create = action_pb2.Action.CreateTrial(
            trial_key=str(uuid.uuid4()), trial_id=trial_id, hparams=to_value({"lr": 0.1}), trial_seed=7
        )
        self.act(create_trial=create)
        return trial_id

    def trial(self, trial_id: str) -> trials.Trial:
        return self.run(lambda c: trials.get(c, trial_id=trial_id))

    def start(self, trial_id: str, state: TrialState = TrialState.RUNNING) -> runs.Run:
        def work(connection: Connection) -> runs.Run:
            trial = trials.get(connection, trial_id=trial_id)
            allocation = allocation_id(trial_id, trial.run + 1)
            runs.insert(connection, run_row(trial, allocation), placements=[[0]])
            trials.update(connection, trial, run=trial.run + 1, state=state.value)
            return runs.get(connection, allocation)

        return self.run(work)

    def signal(self, trial_id: str) -> runs.Run:
        return self.run(lambda c: runs.of_trial(c, trial_id)[-1])

    def messages(self) -> list[outbox.Message]:
        return self.run(lambda c: outbox.pending(c, self.experiment_id))


_WORKSPACE = Workspace(
    number=1,
    name="w",
    owner="ada",
    owner_number=None,
    archived=False,
    created_at=1.0,
    live_experiments=0,
    slots=0,
    storage_bytes=0,
    revision=1,
)


def experiment_row(experiment_id: str) -> dict[str, Any]:
    return {
        "id": experiment_id,
        "request_id": str(uuid.uuid4()),
        "name": "digits",
        "description": "",
        "labels": ["a", "b"],
        "state": "ACTIVE",
        "archived": False,
        "owner": "ada",
        "workspace": "w",
        "project": "p",
        "config": {"resources": {"slots_per_trial": 1, "max_slots": None}},
        "progress": 0.25,
        "failure": "",
        "revision": 1,
        "created_at": 1.0,
        "definition_sha256": "",
        "definition_size": 4,
        "search_created": True,
        "action_cursor": 0,
    }


def run_row(trial: trials.Trial, allocation: str) -> dict[str, Any]:
    return {
        "trial_id": trial.id,
        "run": trial.run + 1,
        "allocation_id": allocation,
        "experiment_id": trial.experiment_id,
        "outcome": RunOutcome.UNSPECIFIED.value,
        "failure": "",
        "slot_ids": [0],
        "started_at": 2.0,
        "trace_id": "t",
        "signal_revision": 0,
        "preempt": False,
        "kill": False,
        "signal_reason": "",
        "acknowledged": False,
    }


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


def test_migrations_make_what_the_tables_say(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"include_name": lambda name, kind, _: kind != "table" or name != "alembic_version"},
        )
        assert compare_metadata(context, metadata) == []


def test_experiments_are_numbered_from_one_and_numbers_never_come_back(store: Store) -> None:
    assert store.experiment().number == 1
    second = store.run(lambda c: experiments.insert(c, experiment_row(str(uuid.uuid4())), b""))
    assert second.number == 2
    with pytest.raises(NotFoundError, match="experiment 3 does not exist"):
        store.run(lambda c: experiments.get(c, number=3))


def test_action_is_applied_once_however_often_it_comes(store: Store) -> None:
    trial_id = store.create_trial()
    repeated = action_pb2.Action(
        sequence=1,
        create_trial=action_pb2.Action.CreateTrial(
            trial_key="x", trial_id=str(uuid.uuid4()), hparams=to_value({})
        ),
    )
    cursor = store.run(lambda c: actions.apply(c, store.experiment_id, [repeated], NOW, ActionInputs()))
    assert cursor == 1
    known = store.run(lambda c: trials.of_experiment(c, store.experiment_id))
    assert [trial.id for trial in known] == [trial_id]
    assert known[0].state is TrialState.QUEUED
    assert [message.kind for message in store.messages()] == [outbox.Kind.TRIAL_CREATED]


def test_pause_signals_running_trials_and_takes_waiting_ones_from_the_queue(store: Store) -> None:
    running, queued = store.create_trial(), store.create_trial()
    store.start(running)
    store.change(commands.pause)
    assert store.experiment().state is ExperimentState.PAUSED
    assert store.trial(queued).state is TrialState.PAUSED
    assert store.trial(running).state is TrialState.STOPPING
    signal = store.signal(running)
    assert (signal.preempt, signal.kill, signal.signal_reason) == (True, False, "USER")
    assert (signal.signal_revision, signal.signal_deadline) == (1, 1060.0)


def test_a_run_s_own_time_to_checkpoint_counts_before_the_cluster_s(store: Store) -> None:
    running = store.create_trial()
    run = store.start(running)
    store.run(lambda c: runs.update(c, run.allocation_id, preemption_timeout=5.0))
    store.change(commands.pause)
    assert store.signal(running).signal_deadline == 1005.0


@pytest.mark.parametrize("grace", [None, 0, 2.5])
def test_a_supervisor_is_told_the_grace_of_the_config_or_none(store: Store, grace: float | None) -> None:
    trial_id = store.create_trial()
    run = store.start(trial_id)
    experiment = store.experiment()
    config = {
        "searcher": {"name": "single", "metric": "loss"},
        "checkpoint_storage": {"type": "directory", "container_path": "/checkpoints"},
        "termination_grace": grace,
    }
    spec = launch_spec(
        run=run,
        containers=store.run(lambda c: runs.containers_of(c, run.allocation_id)),
        container_rank=0,
        trial=store.trial(trial_id),
        experiment=replace(experiment, config=config),
        workspace=_WORKSPACE,
        earlier=[],
        terms=LaunchParameters(cluster_id="c", lease_ttl=30, preemption_timeout=60, collective_key="k"),
    )
    told = seconds_of(spec.termination_grace) if spec.HasField("termination_grace") else None
    assert told == grace


def test_pausing_twice_is_pausing_once(store: Store) -> None:
    running = store.create_trial()
    store.start(running)
    store.change(commands.pause)
    store.change(commands.pause)
    assert store.signal(running).signal_revision == 1


def test_trial_created_while_paused_is_paused(store: Store) -> None:
    store.change(commands.pause)
    assert store.trial(store.create_trial()).state is TrialState.PAUSED


def test_activate_queues_what_pause_took_away(store: Store) -> None:
    trial_id = store.create_trial()
    store.change(commands.pause)
    store.change(commands.activate)
    assert store.trial(trial_id).state is TrialState.QUEUED
    queue = store.run(lambda c: pending_trials(c, per_experiment=9, without_slots=9))
    assert [one.trial_id for one in queue] == [trial_id]


def test_a_trial_that_goes_on_is_served_before_those_that_have_not_begun(store: Store) -> None:
    promoted, first, second = (store.create_trial() for _ in range(3))
    store.start(promoted)
    waits = {"state": TrialState.QUEUED.value, "queued_at": NOW.now + 100.0}
    store.run(lambda c: trials.update(c, trials.get(c, trial_id=promoted), **waits))
    queue = store.run(lambda c: pending_trials(c, per_experiment=9, without_slots=9))
    assert [one.trial_id for one in queue] == [promoted, first, second]
    first_of_each = store.run(lambda c: pending_trials(c, per_experiment=1, without_slots=9))
    assert [one.trial_id for one in first_of_each] == [promoted]


def test_cancel_ends_waiting_trials_at_once_and_asks_running_ones(store: Store) -> None:
    running, queued = store.create_trial(), store.create_trial()
    store.start(running)
    store.change(commands.cancel)
    assert store.experiment().state is ExperimentState.STOPPING_CANCELED
    assert store.trial(queued).state is TrialState.CANCELED
    assert store.signal(running).preempt
    assert store.run(lambda c: commands.finish_if_done(c, store_experiment(c, store), NOW)) is (
        ExperimentState.STOPPING_CANCELED
    )


def store_experiment(connection: Connection, store: Store) -> experiments.Experiment:
    return experiments.get(connection, experiment_id=store.experiment_id)


def test_kill_goes_over_a_preemption_that_is_under_way(store: Store) -> None:
    running = store.create_trial()
    store.start(running)
    store.change(commands.cancel)
    store.change(commands.kill)
    signal = store.signal(running)
    assert (signal.preempt, signal.kill, signal.signal_revision) == (True, True, 2)
    assert store.trial(running).kill_requested


def test_killing_a_trial_leaves_its_experiment_alone(store: Store) -> None:
    trial_id = store.create_trial()
    store.run(lambda c: commands.kill_trial(c, trials.get(c, trial_id=trial_id), NOW))
    killed = store.trial(trial_id)
    assert (killed.state, killed.kill_requested) == (TrialState.CANCELED, True)
    assert store.experiment().state is ExperimentState.ACTIVE
    with pytest.raises(IllegalTransitionError, match="CANCELED"):
        store.run(lambda c: commands.kill_trial(c, trials.get(c, trial_id=trial_id), NOW))


def test_new_work_wakes_a_waiting_trial_and_stale_work_does_not(store: Store) -> None:
    trial_id = store.create_trial()
    store.run(
        lambda c: trials.update(
            c, trials.get(c, trial_id=trial_id), state=TrialState.WAITING.value, settled_length=4
        )
    )
    store.act(run_trial=action_pb2.Action.RunTrial(trial_id=trial_id, length=4))
    assert store.trial(trial_id).state is TrialState.WAITING
    store.act(run_trial=action_pb2.Action.RunTrial(trial_id=trial_id, length=16))
    assert store.trial(trial_id).state is TrialState.QUEUED


def test_close_ends_a_waiting_trial_and_leaves_word(store: Store) -> None:
    trial_id = store.create_trial()
    store.run(lambda c: trials.update(c, trials.get(c, trial_id=trial_id), state=TrialState.WAITING.value))
    store.act(close_trial=action_pb2.Action.CloseTrial(trial_id=trial_id))
    assert store.trial(trial_id).state is TrialState.COMPLETED
    kinds = [message.kind for message in store.messages()]
    assert kinds == [outbox.Kind.TRIAL_CREATED, outbox.Kind.TRIAL_ENDED, outbox.Kind.LOGS_CLOSED]


def test_stop_signals_a_running_trial(store: Store) -> None:
    trial_id = store.create_trial()
    store.start(trial_id)
    store.act(stop_trial=action_pb2.Action.StopTrial(trial_id=trial_id))
    assert store.signal(trial_id).signal_reason == "SEARCH"


@pytest.mark.parametrize(
    ("shutdown", "state"),
    [
        ({}, ExperimentState.STOPPING_COMPLETED),
        ({"failure": True}, ExperimentState.STOPPING_ERROR),
        ({"cancel": True}, ExperimentState.STOPPING_CANCELED),
    ],
)
def test_shutdown_of_the_search_ends_the_experiment(
    store: Store, shutdown: dict[str, bool], state: ExperimentState
) -> None:
    store.act(shutdown=action_pb2.Action.Shutdown(**shutdown))
    assert store.experiment().state is state
    ended = store.run(lambda c: commands.finish_if_done(c, store_experiment(c, store), NOW))
    assert ended.value == state.value.removeprefix("STOPPING_")
    assert store.experiment().ended_at == NOW.now


@pytest.mark.parametrize("how", [{"exited": True, "exit_code": 0}, {"lost": True}])
def test_trial_whose_processes_have_ended_is_not_shown_as_running(store: Store, how: dict[str, Any]) -> None:
    trial_id = store.create_trial()
    run = store.start(trial_id)
    store.run(lambda c: record_container_exit(c, run, 0, NOW, **how))
    assert store.trial(trial_id).state is TrialState.STOPPING


@pytest.mark.parametrize(
    ("end_time", "ended_at"),
    [(990.5, 990.5), (0.0, NOW.now), (NOW.now + 60, NOW.now)],
    ids=["its own word", "it left no word", "its clock is ahead"],
)
def test_container_keeps_when_it_ended_and_no_later_than_it_was_heard_of(
    store: Store, end_time: float, ended_at: float
) -> None:
    run = store.start(store.create_trial())
    before = store.run(lambda c: runs.container(c, run.allocation_id, 0))
    assert (before.ended_at, before.straggler) == (None, False)
    store.run(lambda c: record_container_exit(c, run, 0, NOW, end_time=end_time, exited=True, exit_code=1))
    assert store.run(lambda c: runs.container(c, run.allocation_id, 0)).ended_at == ended_at


def test_only_containers_that_go_on_are_marked_as_stragglers(store: Store) -> None:
    trial = store.trial(store.create_trial())
    ends: list[dict[str, Any]] = [{"exited": True, "exit_code": 1}, {"lost": True}, {}, {}]
    row = run_row(trial, allocation_id(trial.id, 1))

    def work(connection: Connection) -> list[bool]:
        runs.insert(connection, row, placements=[[rank] for rank, _ in enumerate(ends)])
        for rank, end in enumerate(ends[:2]):
            runs.update_container(connection, row["allocation_id"], rank, **end)
        runs.mark_stragglers(connection, allocation_id=row["allocation_id"], silent=[3])
        return [each.straggler for each in runs.containers_of(connection, row["allocation_id"])]

    assert store.run(work) == [False, False, True, False]


def test_trial_of_which_a_container_lives_goes_on_and_an_old_run_says_nothing(store: Store) -> None:
    trial_id = store.create_trial()
    first = store.start(trial_id)
    store.run(lambda c: runs.update(c, first.allocation_id, outcome=RunOutcome.LOST.value))
    second = store.start(trial_id)
    store.run(lambda c: record_container_exit(c, first, 0, NOW, lost=True))
    assert store.trial(trial_id).state is TrialState.RUNNING
    assert store.signal(trial_id).allocation_id == second.allocation_id


def test_decision_about_a_run_is_written_once(store: Store) -> None:
    trial_id = store.create_trial()
    run = store.start(trial_id)
    decision = Decision(RunEvent.FAIL, TrialEvent.RUN_RETRIED)

    def write(connection: Connection) -> None:
        record_run_exit(
            connection,
            trials.get(connection, trial_id=trial_id),
            run,
            evidence=Evidence(
                exit=Exit(exit_code=3), failure="Traceback\nValueError: no", sealed=NOTHING_SEALED
            ),
            decision=decision,
            experiment=ExperimentState.ACTIVE,
            timing=NOW,
        )

    store.run(write)
    store.run(write)
    trial = store.trial(trial_id)
    assert (trial.restarts, trial.state, trial.explanation) == (
        1,
        TrialState.QUEUED,
        "failed: ValueError: no",
    )
    assert (store.signal(trial_id).outcome, store.signal(trial_id).exit_code) == (RunOutcome.FAILED, 3)


def test_every_change_that_a_person_makes_leaves_an_audit_row(store: Store) -> None:
    store.change(commands.pause)
    store.change(commands.cancel)
    rows = store.run(lambda c: c.execute(sa.select(audit.c.action, audit.c.resource)).all())
    assert [tuple(row) for row in rows] == [("pause", "experiment 1"), ("cancel", "experiment 1")]


def test_changes_raise_the_revision_that_watchers_compare(store: Store) -> None:
    before = store.experiment().revision
    trial_id = store.create_trial()
    after = store.experiment().revision
    assert after > before
    changed = store.run(lambda c: trials.of_experiment(c, store.experiment_id, revision=before))
    assert [trial.id for trial in changed] == [trial_id]
    assert store.run(lambda c: trials.of_experiment(c, store.experiment_id, revision=after)) == []


def test_lists_are_filtered_and_paged_newest_first(store: Store) -> None:
    store.run(lambda c: users.ensure(c, user=User("two", Role.EDITOR), now=1.0))
    owner = store.run(lambda c: users.get(c, name="two")).number
    for name in ("one", "two", "three"):
        row = {**experiment_row(str(uuid.uuid4())), "name": name, "labels": [name, "all"], "owner": name}
        store.run(partial(experiments.insert, values=row, definition=b""))

    def page(request: ListExperimentsRequest, **wanted: Any) -> tuple[list[str], str]:
        found, token = store.run(lambda c: experiments.page(c, request, experiments.Filter(**wanted)))
        read = store.run(lambda c: experiments.known(c, [version.id for version in found]))
        return [read[version.id].name for version in found], token

    names, token = page(ListExperimentsRequest(page_size=2))
    assert names == ["three", "two"]
    assert page(ListExperimentsRequest(page_size=2, page_token=token)) == (["one", "digits"], "")
    assert page(ListExperimentsRequest(order_by="name"))[0] == ["digits", "one", "three", "two"]
    for wanted in (
        {"labels": frozenset({"two", "all"})},
        {"owner_ids": frozenset({owner})},
        {"name": "TW"},
    ):
        assert page(ListExperimentsRequest(), **wanted) == (["two"], "")
    assert page(ListExperimentsRequest(), labels=frozenset({"two", "one"})) == ([], "")
    assert page(ListExperimentsRequest(), workspace_ids=frozenset({77})) == ([], "")


def test_checkpoints_that_trials_began_from_are_found(store: Store) -> None:
    source, other = str(uuid.uuid4()), str(uuid.uuid4())
    create = action_pb2.Action.CreateTrial(
        trial_key=str(uuid.uuid4()),
        trial_id=str(uuid.uuid4()),
        hparams=to_value({}),
        trial_seed=7,
        checkpoint_id=source,
    )
    store.act(create_trial=create)
    store.create_trial()
    assert store.run(lambda c: trials.sources(c, [other, source, *map(str, range(1200))])) == {source}
    assert store.run(lambda c: trials.sources(c, [])) == set()
