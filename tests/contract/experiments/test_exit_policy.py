"""What the end of a run means, when its search continues deciding while that is found out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from contract.experiments.test_lifecycle import Store
from support.clocks import ManualClock
from support.databases import migrate
from support.services.experiments_context import NoValidations, context

from resolute.api.checkpoints.v1 import checkpoints_service_pb2
from resolute.api.searcher.v1 import action_pb2, operation_pb2, searcher_service_pb2
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.states import RunOutcome, TrialState
from resolute_experiments.store import experiments, runs
from resolute_experiments.store.experiments import Experiment
from resolute_serving.database.engine import Database

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

    def __init__(self, *happenings: Callable[[], None]) -> None:
        self._happenings = list(happenings)

    async def FenceTrial(self, request: Any) -> checkpoints_service_pb2.FenceTrialResponse:  # noqa: N802
        if self._happenings:
            self._happenings.pop(0)()
        return checkpoints_service_pb2.FenceTrialResponse()


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
            validations=NoValidations(),
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
    process_ended_runs(database, store, SimpleNamespace(searcher=searcher, checkpoints=checkpoints))

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

    clients = SimpleNamespace(searcher=Searcher((4, True)), checkpoints=Checkpoints())
    process_ended_runs(database, store, clients, machines=NoMachines(note))
    assert shown == [(TrialState.STOPPING, RunOutcome.UNSPECIFIED)]
    assert store.trial(trial_id).state is not TrialState.STOPPING
