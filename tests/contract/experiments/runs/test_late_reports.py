"""An experiment whose run left reports on its machine ends, and collects checkpoints, after they arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from contract.experiments.lifecycle.test_lifecycle import Store
from sqlalchemy.engine import Connection
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context, copy_nothing, judge_nothing

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.errors import NotFoundError, UnavailableError
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.retention.deferred import DeferredRetention
from resolute_experiments.states import ExperimentState, RunOutcome, TrialState
from resolute_experiments.store import experiments, outbox, runs, trials
from resolute_experiments.store.copies import reported_steps
from resolute_experiments.store.experiments import Experiment
from resolute_serving.database.engine import Database

CONFIG = {
    "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True},
    "checkpoint_storage": {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 0},
}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield made
    made.close()


@dataclass
class Registry:
    """The checkpoints service as far as an end asks it: a checkpoint of each trial."""

    trials: dict[str, str] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)
    """Checkpoints that were to stay whatever the policy says, call by call."""
    away: bool = False
    keep_reasons: tuple[str, ...] = ()
    """Why each checkpoint stays."""

    async def ListCheckpoints(self, request: Any, **_: Any) -> Any:  # noqa: N802
        found = [
            checkpoint_pb2.Checkpoint(
                checkpoint_id=key, trial_id=trial, steps_completed=1, keep_reasons=self.keep_reasons
            )
            for key, trial in self.trials.items()
        ]
        return checkpoints_service_pb2.ListCheckpointsResponse(checkpoints=found)

    async def PreviewRetention(self, request: Any, **_: Any) -> Any:  # noqa: N802
        return checkpoints_service_pb2.PreviewRetentionResponse()

    async def ApplyRetention(self, request: Any, **_: Any) -> Any:  # noqa: N802
        if self.away:
            raise UnavailableError("the checkpoints service does not answer")
        late = set(request.rules.awaited_trial_ids)
        self.asked.append([key for key, trial in self.trials.items() if trial in late])
        return checkpoints_service_pb2.ApplyRetentionResponse()


class NoMetrics:
    async def GetSeries(self, request: Any, **_: Any) -> metrics_service_pb2.GetSeriesResponse:  # noqa: N802
        raise NotFoundError("there is no such series")

    async def ListSummaries(self, request: Any, **_: Any) -> metrics_service_pb2.ListSummariesResponse:  # noqa: N802
        return metrics_service_pb2.ListSummariesResponse()


@dataclass
class Machines:
    """What is on machines."""

    waiting: list[str] = field(default_factory=list)

    async def deliver_lines(self, ended: Sequence[runs.Run]) -> None: ...

    async def release(self, run: runs.Run) -> None: ...

    async def unreported(self, experiment: Experiment) -> Sequence[str]:
        return self.waiting


@dataclass
class Ending:
    """An experiment all of whose trials have ended: two, each with a run and a checkpoint."""

    store: Store
    controller: ExperimentController
    database: Database
    registry: Registry
    machines: Machines
    clock: ManualClock
    allocations: list[str]

    def step(self) -> ExperimentState:
        asyncio.run(self.controller._finish(self.store.experiment()))
        return self.store.experiment().state

    def end_late(self) -> None:
        """Ends it while reports of the first trial have not arrived."""
        self.machines.waiting = [self.allocations[0]]
        self.step()
        self.clock.advance(600)
        assert self.step() is ExperimentState.COMPLETED

    def look(self) -> None:
        """Looks for what is owed, as a service that has just started."""
        core = context(self.database, self.clock)
        clients = SimpleNamespace(checkpoints=self.registry, metrics=NoMetrics())
        deferred = DeferredRetention(core, clients=clients, unreported=self.machines.unreported)  # type: ignore[arg-type]
        asyncio.run(deferred.look())


def ended(connection: Connection, *, trial_id: str, allocation_id: str) -> None:
    trials.update(connection, trials.get(connection, trial_id=trial_id), state=TrialState.COMPLETED.value)
    runs.update(connection, allocation_id, outcome=RunOutcome.COMPLETED.value, ended_at=1.0)


@pytest.fixture
def ending(database: Database) -> Ending:
    store, registry, machines, clock = Store(database.engine), Registry(), Machines(), ManualClock()
    allocations = []
    for name in ("one", "two"):
        trial_id = store.create_trial()
        allocations.append(store.start(trial_id).allocation_id)
        store.run(partial(ended, trial_id=trial_id, allocation_id=allocations[-1]))
        registry.trials[name] = trial_id
    store.run(
        lambda c: experiments.update(
            c,
            store.experiment_id,
            state=ExperimentState.STOPPING_COMPLETED.value,
            config=CONFIG,
            search_created=False,
        )
    )
    store.run(partial(outbox.remove, positions=[message.position for message in store.messages()]))
    controller = ExperimentController(
        store.experiment_id,
        context(database, clock),
        clients=SimpleNamespace(checkpoints=registry, metrics=NoMetrics()),  # type: ignore[arg-type]
        lease_ttl=30.0,
        machines=machines,
        copy_metrics=copy_nothing,
        judge=judge_nothing,
    )
    return Ending(store, controller, database, registry, machines, clock, allocations)


def test_checkpoints_are_collected_only_after_all_reports_arrived(ending: Ending) -> None:
    ending.machines.waiting = [ending.allocations[0], "allocation.of.another.experiment"]
    for _ in range(3):
        ending.clock.advance(60)
        assert ending.step() is ExperimentState.STOPPING_COMPLETED
    assert ending.registry.asked == []
    ending.machines.waiting.pop(0)
    assert ending.step() is ExperimentState.COMPLETED
    assert ending.registry.asked == [[]]


def test_reports_that_never_come_keep_the_checkpoints_of_their_trial_and_nothing_else(ending: Ending) -> None:
    ending.machines.waiting = [ending.allocations[0]]
    assert ending.step() is ExperimentState.STOPPING_COMPLETED
    ending.clock.advance(600)
    assert ending.step() is ExperimentState.COMPLETED
    assert ending.registry.asked == [["one"]]


def test_checkpoints_that_stayed_are_collected_once_the_reports_have_arrived(ending: Ending) -> None:
    ending.end_late()
    ending.look()
    assert ending.registry.asked == [["one"]]
    ending.machines.waiting = []
    ending.look()
    assert ending.registry.asked == [["one"], []]
    ending.look()
    assert ending.registry.asked == [["one"], []]


def test_steps_are_asked_for_at_the_end_and_once_more_when_late_reports_have_arrived(ending: Ending) -> None:
    def looked_at(connection: Connection) -> int:
        due = reported_steps.due(connection, after=0, limit=10)
        if due:
            reported_steps.store(connection, [(trial, None) for trial in due])
        return len(due)

    assert ending.store.run(looked_at) == 0
    ending.end_late()
    assert ending.store.run(looked_at) == 2
    ending.look()
    assert ending.store.run(looked_at) == 0, "the machine is away still"
    ending.machines.waiting = []
    ending.look()
    assert ending.store.run(looked_at) == 2


def test_an_end_that_was_not_late_owes_nothing(ending: Ending) -> None:
    assert ending.step() is ExperimentState.COMPLETED
    ending.look()
    assert ending.registry.asked == [[]]


def test_checkpoints_that_are_read_at_the_end_are_collected_once_no_process_reads_them(
    ending: Ending,
) -> None:
    ending.registry.keep_reasons = ("held",)
    assert ending.step() is ExperimentState.COMPLETED
    ending.look()
    assert ending.registry.asked == [[], []]
    ending.registry.keep_reasons = ("held", "trial_best")
    ending.look()
    ending.look()
    assert ending.registry.asked == [[], [], []], "it stays for another reason too"


def test_what_is_owed_stays_owed_while_the_registry_is_away(ending: Ending) -> None:
    ending.end_late()
    ending.machines.waiting = []
    ending.registry.away = True
    with pytest.raises(UnavailableError):
        ending.look()
    ending.registry.away = False
    ending.look()
    assert ending.registry.asked == [["one"], []]


def test_nothing_is_collected_while_an_experiment_goes_on_and_what_it_owes_is_found_out_anew(
    ending: Ending,
) -> None:
    ending.end_late()
    ending.machines.waiting = []
    id_ = ending.store.experiment_id
    ending.store.run(lambda c: experiments.update(c, id_, state=ExperimentState.ACTIVE.value))
    ending.look()
    assert ending.registry.asked == [["one"]]
    ending.store.run(lambda c: experiments.update(c, id_, state=ExperimentState.STOPPING_COMPLETED.value))
    assert ending.step() is ExperimentState.COMPLETED
    ending.look()
    assert ending.registry.asked == [["one"], []]


def test_a_change_during_the_collection_leaves_it_owed(ending: Ending) -> None:
    ending.end_late()
    before = ending.store.experiment()
    ending.store.run(lambda c: experiments.touch(c, before.id))
    ending.store.run(lambda c: experiments.clear_owed_retention(c, before))
    assert ending.store.experiment().retention_owed


def test_reports_that_are_late_once_more_are_waited_for_as_long_again(ending: Ending) -> None:
    ending.machines.waiting = [ending.allocations[0]]
    assert ending.step() is ExperimentState.STOPPING_COMPLETED
    ending.clock.advance(400)
    ending.machines.waiting = []
    ending.registry.away = True
    with pytest.raises(UnavailableError):
        ending.step()
    ending.registry.away = False
    ending.machines.waiting = [ending.allocations[1]]
    ending.clock.advance(400)
    assert ending.step() is ExperimentState.STOPPING_COMPLETED
