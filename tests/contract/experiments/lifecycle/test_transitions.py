"""Every row of the tables of states, carried out in a real database: that is done, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa
from contract.experiments.lifecycle.test_lifecycle import NOW, Store, experiment_row
from sqlalchemy.engine import Connection
from support.databases.prepared import migrate

from resolute.errors import IllegalTransitionError, QuotaError
from resolute_experiments.accounts.store import projects, workspaces
from resolute_experiments.states import (
    ALLOCATIONS,
    ENDED_EXPERIMENTS,
    ENDED_TRIALS,
    EXPERIMENTS,
    TRIALS,
    AllocationEffect,
    AllocationEvent,
    AllocationState,
    ExperimentEffect,
    ExperimentEvent,
    ExperimentState,
    RunOutcome,
    TrialEffect,
    TrialEvent,
    TrialState,
)
from resolute_experiments.store import experiments, outbox, runs, schema, trials
from resolute_experiments.store.outbox import SearchEvent
from resolute_experiments.transitions import signals, transition_experiment, transition_trial
from resolute_experiments.transitions.signals import SignalReason
from resolute_serving.database.engine import create_engine

F = TrialEffect
LATER = replace(NOW, now=NOW.now + 500.0)
TOLD = {
    F.NOTIFY_CLOSED: SearchEvent.CLOSED,
    F.NOTIFY_ERRORED: SearchEvent.ERRORED,
    F.NOTIFY_STOPPED: SearchEvent.USER_REQUESTED_STOP,
    F.NOTIFY_CANCELED: SearchEvent.USER_CANCELED,
    F.NOTIFY_INVALID: SearchEvent.INVALID_HP,
    F.NOTIFY_INVALID_AT_INIT: SearchEvent.INIT_INVALID_HP,
}


class UndoError(Exception):
    """Ends a trial of strength with the database as it was."""


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    yield Store(engine)
    engine.dispose()


@dataclass(frozen=True)
class Seen:
    """What can be seen of a trial and its run."""

    trial: trials.Trial
    run: runs.Run
    told: list[str]
    logs_closed: bool


def seen(connection: Connection, trial_id: str) -> Seen:
    """Looks at a trial."""
    trial = trials.get(connection, trial_id=trial_id)
    messages = outbox.pending(connection, trial.experiment_id)
    return Seen(
        trial=trial,
        run=runs.of_trial(connection, trial_id)[-1],
        told=[message.payload["event"] for message in messages if message.kind is outbox.Kind.TRIAL_ENDED],
        logs_closed=any(message.kind is outbox.Kind.LOGS_CLOSED for message in messages),
    )


def observed(before: Seen, after: Seen) -> set[TrialEffect]:
    """Tells the effects of what happened from what changed."""
    old, new = before.trial, after.trial
    signs = {
        F.ENQUEUE: new.queued_at == LATER.now,
        F.BEGIN_RUN: new.run == old.run + 1,
        F.SIGNAL: after.run.preempt and after.run.signal_deadline == LATER.now + 60.0,
        F.KILL: after.run.kill and after.run.signal_deadline == LATER.now,
        F.MARK_KILLED: new.kill_requested,
        F.MARK_CLOSED: new.closed,
        F.COUNT_RESTART: new.restarts == old.restarts + 1,
        F.RESET_RESTARTS: new.life == old.life + 1 and new.restarts == 0,
        F.CLEAR_END: old.ended_at is not None and new.ended_at is None and new.life == old.life,
        F.END: new.ended_at == LATER.now and after.logs_closed,
    }
    signs |= {effect: after.told == [event.value] for effect, event in TOLD.items()}
    return {effect for effect, there in signs.items() if there}


def try_trial(store: Store, trial_id: str, state: TrialState, event: TrialEvent) -> tuple[Seen, Seen]:
    """Lets an event happen in a state, and forgets it."""
    found: list[Seen] = []

    def work(connection: Connection) -> None:
        ended_at = 5.0 if state in ENDED_TRIALS else None
        trial = trials.get(connection, trial_id=trial_id)
        trials.update(connection, trial, state=state.value, restarts=3, ended_at=ended_at)
        found.append(seen(connection, trial_id))
        transition_trial(connection, found[0].trial, event, LATER)
        found.append(seen(connection, trial_id))
        raise UndoError

    with pytest.raises(UndoError):
        store.run(work)
    return found[0], found[1]


def test_trials_do_what_their_table_says(store: Store) -> None:
    trial_id = store.create_trial()
    store.start(trial_id)
    for (state, event), step in TRIALS.steps.items():
        before, after = try_trial(store, trial_id, state, event)
        assert after.trial.state is step.after, (state, event)
        # Anyone who runs already has no end that could be forgotten.
        invisible = {F.CLEAR_END} if state not in ENDED_TRIALS else set()
        assert observed(before, after) == set(step.effects) - invisible - {F.REEVALUATE_EXIT}, (state, event)
        if F.REEVALUATE_EXIT in step.effects:
            assert after.trial.revision > before.trial.revision, (state, event)
        if step.after is state and not step.effects:
            assert after.trial == before.trial, "what changes nothing wakes no watcher"


def test_an_illegal_event_changes_no_trial(store: Store) -> None:
    trial_id = store.create_trial()
    store.start(trial_id)
    before = store.run(lambda c: seen(c, trial_id))
    for event in TrialEvent:
        if not TRIALS.allows(TrialState.RUNNING, event):
            with pytest.raises(IllegalTransitionError):
                store.run(partial(transition_trial, trial=before.trial, event=event, timing=LATER))
    assert store.run(lambda c: seen(c, trial_id)) == before


def test_whoever_would_queue_in_a_paused_experiment_is_paused(store: Store) -> None:
    for (state, event), step in TRIALS.steps.items():
        if F.ENQUEUE not in step.effects:
            continue
        trial_id = store.create_trial()
        store.start(trial_id, state)
        work = partial(transition_trial, event=event, timing=LATER, paused=True)
        store.run(lambda c, one=trial_id, work=work: work(c, trials.get(c, trial_id=one)))  # type: ignore[misc]
        assert store.trial(trial_id).state is TrialState.PAUSED, (state, event)


X = ExperimentEffect
PASSED_ON = {
    X.PAUSE_TRIALS: (TrialEvent.PAUSE, SignalReason.USER),
    X.ACTIVATE_TRIALS: (TrialEvent.ACTIVATE, SignalReason.USER),
    X.CANCEL_TRIALS: (TrialEvent.CANCEL, SignalReason.USER),
    X.END_TRIALS: (TrialEvent.CANCEL, SignalReason.SEARCH),
    X.KILL_TRIALS: (TrialEvent.KILL, SignalReason.USER),
}


def place(connection: Connection, experiment: experiments.Experiment) -> None:
    """Makes the workspace of an experiment, in which one may live."""
    workspaces.create(connection, experiment.workspace, owner="ada", now=1.0)
    projects.create(
        connection, experiment.workspace, experiment.project, description="", notes="", owner="a", now=1.0
    )


def test_experiments_do_what_their_table_says(store: Store) -> None:
    idle = (TrialState.QUEUED, TrialState.PAUSED, TrialState.WAITING)
    others = {state: store.create_trial() for state in idle}
    running = store.create_trial()
    store.start(running)
    ended = store.create_trial()

    def work(connection: Connection, state: ExperimentState, event: ExperimentEvent) -> None:
        step = EXPERIMENTS.steps[state, event]
        over = 5.0 if state in ENDED_EXPERIMENTS else None
        place(connection, experiments.get(connection, experiment_id=store.experiment_id))
        experiments.update(
            connection, store.experiment_id, state=state.value, ended_at=over, failure="f", archived=True
        )
        for trial_state, trial_id in {**others, TrialState.ERROR: ended}.items():
            trials.update(connection, trials.get(connection, trial_id=trial_id), state=trial_state.value)
        before = experiments.get(connection, experiment_id=store.experiment_id)
        transition_experiment(connection, before, event, LATER)
        after = experiments.get(connection, experiment_id=store.experiment_id)
        assert after.state is step.after
        recorded = connection.execute(sa.select(schema.audit.c.action)).scalars().all()
        assert recorded == ([event.name.lower()] if X.RECORD in step.effects else [])
        assert (after.ended_at == LATER.now) == (X.END in step.effects)
        by_kill = state is ExperimentState.STOPPING_KILLED or event is ExperimentEvent.UNMANAGED_RUNS_KILLED
        assert after.killed == (after.state is ExperimentState.CANCELED and by_kill)
        assert (after.failure == "" and not after.archived) == (X.CLEAR_END in step.effects)
        code = list(experiments.definition(connection, store.experiment_id))
        assert (not code) == (X.REMOVE_CODE in step.effects)
        passed_on = [PASSED_ON[effect] for effect in step.effects if effect in PASSED_ON]
        assert trials.get(connection, trial_id=ended).state is TrialState.ERROR
        for trial_state, trial_id in {**others, TrialState.RUNNING: running}.items():
            reached = trials.get(connection, trial_id=trial_id).state
            happens = passed_on[0][0] if passed_on else None
            assert reached is (TRIALS.steps[trial_state, happens].after if happens else trial_state)
        if passed_on and signals_trials(passed_on[0][0]):
            assert seen(connection, running).run.signal_reason == passed_on[0][1].value
        raise UndoError

    for state, event in EXPERIMENTS.steps:
        with pytest.raises(UndoError):
            store.run(partial(work, state=state, event=event))


def signals_trials(event: TrialEvent) -> bool:
    """Whether an event raises the signal of a running trial."""
    return bool({F.SIGNAL, F.KILL}.intersection(TRIALS.steps[TrialState.RUNNING, event].effects))


def test_whoever_goes_on_after_the_end_is_admitted_like_a_new_one(store: Store) -> None:
    def go_on(connection: Connection, state: ExperimentState) -> None:
        experiments.update(connection, store.experiment_id, state=state.value)
        experiment = experiments.get(connection, experiment_id=store.experiment_id)
        transition_experiment(connection, experiment, ExperimentEvent.CONTINUE, NOW)

    def fill(connection: Connection) -> None:
        place(connection, experiments.get(connection, experiment_id=store.experiment_id))
        workspaces.set_quota(
            connection, workspaces.get(connection, name="w"), workspaces.Quota(live_experiments=1)
        )
        experiments.insert(connection, experiment_row(str(uuid.uuid4())), b"")

    store.run(fill)
    for state in (ExperimentState.COMPLETED, ExperimentState.CANCELED, ExperimentState.ERROR):
        with pytest.raises(QuotaError, match="may have 1"):
            store.run(partial(go_on, state=state))
    store.run(partial(go_on, state=ExperimentState.PAUSED))


MARKS: dict[AllocationState, dict[str, Any]] = {
    AllocationState.GRANTED: {"kill": False},
    AllocationState.EXITING: {"acknowledged": True},
    AllocationState.SIGNALED: {"preempt": True},
    AllocationState.ACKNOWLEDGED: {"preempt": True, "acknowledged": True},
    AllocationState.KILLED: {"kill": True},
    AllocationState.FREED: {"outcome": RunOutcome.LOST.value},
}
CALLS: dict[AllocationEvent, Callable[[Connection, runs.Run], None]] = {
    AllocationEvent.PREEMPT: partial(signals.preempt, reason=SignalReason.USER, timing=LATER),
    AllocationEvent.ACKNOWLEDGE: signals.acknowledge,
    AllocationEvent.KILL: partial(signals.kill, reason=SignalReason.USER, timing=LATER),
    AllocationEvent.FREE: partial(signals.free, outcome=RunOutcome.FAILED.value),
}


@pytest.mark.parametrize(("state", "event"), list(product(AllocationState, AllocationEvent)))
def test_allocations_do_what_their_table_says(
    link: Connection, state: AllocationState, event: AllocationEvent
) -> None:
    marked = runs.get(link, allocation(link))
    runs.update(link, marked.allocation_id, **MARKS[state])
    before = runs.get(link, marked.allocation_id)
    assert before.allocation is state
    if not ALLOCATIONS.allows(state, event):
        with pytest.raises(IllegalTransitionError, match=f"is {state.value} and cannot become {event.value}"):
            CALLS[event](link, before)
        return
    CALLS[event](link, before)
    after = runs.get(link, marked.allocation_id)
    step = ALLOCATIONS.steps[state, event]
    assert after.allocation is step.after
    raises = {AllocationEffect.RAISE_PREEMPTION, AllocationEffect.RAISE_KILL}.intersection(step.effects)
    assert after.signal_revision == before.signal_revision + len(raises)
    expected = {
        AllocationEffect.RAISE_PREEMPTION: LATER.now + 60.0,
        AllocationEffect.RAISE_KILL: LATER.now,
    }
    assert after.signal_deadline == (expected[raises.pop()] if raises else before.signal_deadline)
    assert after.acknowledged == (
        before.acknowledged or AllocationEffect.RECORD_ACKNOWLEDGMENT in step.effects
    )
    assert after.ended == (AllocationEffect.RELEASE_SLOTS in step.effects)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    url = f"sqlite:///{tmp_path_factory.mktemp('allocations')}/experiments.sqlite"
    made = create_engine(url, name="experiments", writes=True)
    migrate(made, package="resolute_experiments", schema="experiments")
    store = Store(made)
    store.start(store.create_trial())
    yield made
    made.dispose()


@pytest.fixture
def link(engine: sa.Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection
        connection.rollback()


def allocation(connection: Connection) -> str:
    """The only allocation there is."""
    return str(connection.execute(sa.select(schema.runs.c.allocation_id)).scalar_one())
