"""What the end of a run means, when its search continues deciding while that is found out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from contract.experiments.lifecycle.test_lifecycle import Store
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context, copy_nothing, judge_nothing

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.api.searcher.v1 import action_pb2, operation_pb2, searcher_service_pb2
from resolute.errors import UnavailableError
from resolute_experiments.exits.policy import MOST_BARREN_ENDS
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.states import RunOutcome, TrialState
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.store.experiments import Experiment
from resolute_serving.database.engine import Database

PREEMPTIBLE = {"resources": {"preemptible": {"enabled": True, "metadata": None}}}
CONFIG = {"searcher": {"name": "single", "max_length": {"batches": 8}}, "max_restarts": 0}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield made
    made.close()


class Searcher:
    """Says where an operation stands at each seal; it stands for the service, whose instants no test can hit.

    Args:
        standings: Length, and whether it was completed, seal by seal.
    """

    def __init__(self, *standings: tuple[int, bool]) -> None:
        self._standings = list(standings)

    async def FenceTrial(self, request: Any) -> searcher_service_pb2.FenceTrialResponse:  # noqa: N802
        length, completed = self._standings.pop(0)
        operation = operation_pb2.TrialOperation(length=length, completed=completed)
        return searcher_service_pb2.FenceTrialResponse(operation=operation)


class Checkpoints:
    """Lets something happen when a trial is fenced."""

    def __init__(self, *happenings: Callable[[], None], latest: tuple[str, int] | None = None) -> None:
        self._happenings = list(happenings)
        self.latest = latest

    async def FenceTrial(self, request: Any) -> checkpoints_service_pb2.FenceTrialResponse:  # noqa: N802
        if self._happenings:
            self._happenings.pop(0)()
        if self.latest is None:
            return checkpoints_service_pb2.FenceTrialResponse()
        key, steps = self.latest
        latest = checkpoint_pb2.Checkpoint(checkpoint_id=key, steps_completed=steps)
        return checkpoints_service_pb2.FenceTrialResponse(latest_checkpoint=latest)


class Metrics:
    """Says how far runs got; it stands for the service, which no run reported to here.

    Args:
        steps: The last step, run by run; None to be away.
    """

    def __init__(self, *steps: int | None) -> None:
        self._steps = steps
        self._asked = 0

    async def ListLastSteps(  # noqa: N802
        self, request: metrics_service_pb2.ListLastStepsRequest, *, timeout: float
    ) -> metrics_service_pb2.ListLastStepsResponse:
        assert timeout > 0
        # Each run is asked for once, at its end.
        self._asked += 1
        last = self._steps[self._asked - 1] if self._asked <= len(self._steps) else 0
        if last is None:
            raise UnavailableError("metrics does not answer")
        kind = metrics_service_pb2.ListLastStepsResponse.LastSteps
        (trial_id,) = request.trial_ids
        found = [kind(trial_id=trial_id, run=self._asked, steps=last)] if last else []
        return metrics_service_pb2.ListLastStepsResponse(trials=found)


class NoMachines:
    """Where nothing is left.

    Args:
        deliver: Called when lines are to be delivered.
    """

    def __init__(self, deliver: Callable[[], None] = lambda: None) -> None:
        self._deliver = deliver

    async def deliver_lines(self, ended: Sequence[runs.Run]) -> None:
        assert ended
        self._deliver()

    async def release(self, run: runs.Run) -> None: ...

    async def unreported(self, experiment: Experiment) -> Sequence[str]:
        return ()


def process_ended_runs(
    database: Database, store: Store, clients: Any, *, machines: NoMachines | None = None
) -> None:
    async def body() -> None:
        controller = ExperimentController(
            store.experiment_id,
            context(database, ManualClock()),
            clients=clients,
            lease_ttl=30.0,
            machines=machines or NoMachines(),
            copy_metrics=copy_nothing,
            judge=judge_nothing,
        )
        await controller._process_ended_runs(store.experiment())

    asyncio.run(body())


@pytest.mark.parametrize("work_comes", [False, True])
def test_work_that_comes_while_an_end_is_judged_is_not_lost(database: Database, work_comes: bool) -> None:
    store = Store(database.engine)
    store.run(lambda c: experiments.update(c, store.experiment_id, config=CONFIG))
    trial_id = store.create_trial()
    run = store.start(trial_id, TrialState.STOPPING)
    store.run(
        lambda c: runs.update_container(c, run.allocation_id, 0, exited=True, exit_code=0, acknowledged=True)
    )

    def give_work() -> None:
        store.act(run_trial=action_pb2.Action.RunTrial(trial_id=trial_id, length=8))

    searcher = Searcher((4, True), (8, False)) if work_comes else Searcher((4, True))
    checkpoints = Checkpoints(give_work) if work_comes else Checkpoints()
    process_ended_runs(
        database, store, SimpleNamespace(searcher=searcher, checkpoints=checkpoints, metrics=Metrics())
    )

    trial, ended = store.trial(trial_id), store.signal(trial_id)
    if work_comes:
        assert (trial.state, ended.outcome) == (TrialState.QUEUED, RunOutcome.PREEMPTED)
    else:
        assert (trial.state, ended.outcome) == (TrialState.WAITING, RunOutcome.COMPLETED)


@pytest.mark.parametrize("exit_code", [0, 3])
def test_the_end_of_a_run_is_told_after_its_lines_were_delivered(database: Database, exit_code: int) -> None:
    store = Store(database.engine)
    store.run(lambda c: experiments.update(c, store.experiment_id, config=CONFIG))
    trial_id = store.create_trial()
    run = store.start(trial_id, TrialState.STOPPING)
    store.run(lambda c: runs.update_container(c, run.allocation_id, 0, exited=True, exit_code=exit_code))
    shown: list[tuple[TrialState, RunOutcome]] = []

    def note() -> None:
        shown.append((store.trial(trial_id).state, store.signal(trial_id).outcome))

    clients = SimpleNamespace(searcher=Searcher((4, True)), checkpoints=Checkpoints(), metrics=Metrics())
    process_ended_runs(database, store, clients, machines=NoMachines(note))
    assert shown == [(TrialState.STOPPING, RunOutcome.UNSPECIFIED)]
    assert store.trial(trial_id).state is not TrialState.STOPPING


def end_a_run(
    database: Database, store: Store, trial_id: str, clients: Any, *, signalled: bool = False, **how: Any
) -> runs.Run:
    """Starts and ends the next run of a trial."""
    run = store.start(trial_id, TrialState.STOPPING)
    store.run(lambda c: runs.update(c, run.allocation_id, preempt=signalled))
    store.run(lambda c: runs.update_container(c, run.allocation_id, 0, exited=True, **how))
    clients.searcher = Searcher((8, False))
    process_ended_runs(database, store, clients)
    return store.signal(trial_id)


def test_the_steps_that_the_end_of_a_run_lost_are_those_beyond_the_checkpoint(database: Database) -> None:
    store = Store(database.engine)
    store.run(lambda c: experiments.update(c, store.experiment_id, config={**CONFIG, "max_restarts": 9}))
    trial_id = store.create_trial()
    checkpoints = Checkpoints(latest=("a", 40))
    clients = SimpleNamespace(checkpoints=checkpoints, metrics=Metrics(47, 47, 52, None, 60))

    assert end_a_run(database, store, trial_id, clients, exit_code=1).lost_steps == 7
    checkpoints.latest = ("b", 47)
    ended = end_a_run(database, store, trial_id, clients, exit_code=0, acknowledged=True)
    assert (ended.outcome, ended.kept_steps, ended.lost_steps) == (RunOutcome.PREEMPTED, 47, 0)
    assert end_a_run(database, store, trial_id, clients, exit_code=1).lost_steps == 5
    assert end_a_run(database, store, trial_id, clients, exit_code=1).lost_steps is None, "metrics was away"
    assert store.trial(trial_id).lost_steps == 12
    assert end_a_run(database, store, trial_id, clients, exit_code=0).lost_steps is None, "no run follows"


def test_steps_of_another_trials_checkpoint_are_no_steps_that_were_lost(database: Database) -> None:
    store = Store(database.engine)
    store.run(lambda c: experiments.update(c, store.experiment_id, config={**CONFIG, "max_restarts": 9}))
    trial_id = store.create_trial()
    store.run(
        lambda c: trials.update(c, trials.get(c, trial_id=trial_id), latest_checkpoint_id="of another one")
    )
    clients = SimpleNamespace(checkpoints=Checkpoints(), metrics=Metrics(140))
    assert end_a_run(database, store, trial_id, clients, exit_code=1).lost_steps is None


def test_dying_again_and_again_without_a_later_checkpoint_uses_up_restarts_in_the_end(
    database: Database,
) -> None:
    store = Store(database.engine)
    store.run(lambda c: experiments.update(c, store.experiment_id, config={**CONFIG, **PREEMPTIBLE}))
    trial_id = store.create_trial()
    checkpoints = Checkpoints()
    clients = SimpleNamespace(checkpoints=checkpoints, metrics=Metrics())
    killed = partial(end_a_run, database, store, trial_id, clients, exit_code=137, failure="SIGKILL")

    for _ in range(MOST_BARREN_ENDS):
        assert killed().outcome is RunOutcome.PREEMPTED
    checkpoints.latest = ("a", 10)  # that was worth while: it begins anew
    assert killed().outcome is RunOutcome.PREEMPTED
    assert killed().outcome is RunOutcome.PREEMPTED
    assert (
        killed(signalled=True).outcome is RunOutcome.PREEMPTED
    )  # and an end that was announced ends the row
    for _ in range(MOST_BARREN_ENDS):
        assert killed().outcome is RunOutcome.PREEMPTED
        assert store.trial(trial_id).state is TrialState.QUEUED
    assert killed().outcome is RunOutcome.FAILED
    assert (store.trial(trial_id).state, store.trial(trial_id).restarts) == (TrialState.ERROR, 0)


@pytest.mark.parametrize("repeats", [False, True])
def test_a_failure_that_would_come_again_ends_the_trial_with_restarts_left(
    database: Database, repeats: bool
) -> None:
    store = Store(database.engine)
    config = {**CONFIG, "max_restarts": 2, "repeat_same_failure": repeats}
    store.run(lambda c: experiments.update(c, store.experiment_id, config=config))
    trial_id = store.create_trial()
    clients = SimpleNamespace(checkpoints=Checkpoints(), metrics=Metrics(12, 12, 12))
    failed = partial(end_a_run, database, store, trial_id, clients, exit_code=1, failure="ValueError: bad")

    failed()
    assert store.trial(trial_id).state is TrialState.QUEUED
    failed()
    trial = store.trial(trial_id)
    assert trial.state is (TrialState.QUEUED if repeats else TrialState.ERROR)
    if not repeats:
        assert (
            trial.explanation
            == "failed: ValueError: bad; not repeated: same error at step 12 in runs 1 and 2"
        )
