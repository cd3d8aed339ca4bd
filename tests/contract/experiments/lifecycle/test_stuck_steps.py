"""An experiment whose controller repeats a failing step says so, and a search that cannot be made ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from contract.experiments.lifecycle.test_lifecycle import Store
from contract.experiments.runs.test_exit_policy import NoMachines
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context, copy_nothing, judge_nothing

from resolute.api.searcher.v1 import action_pb2
from resolute.errors import InternalError, UnavailableError
from resolute_config.loading.parse import parse_config
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.lifecycle.stuck_steps import MOST_DEFECTS, SHOWN_AFTER_SECONDS, StuckSteps
from resolute_experiments.states import ExperimentState
from resolute_experiments.store import experiments
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield made
    made.close()


def test_a_step_that_fails_for_a_while_is_shown_until_one_succeeds(database: Database) -> None:
    store, clock = Store(database.engine), ManualClock()
    store.run(lambda c: experiments.update(c, store.experiment_id, warning="of before"))
    stuck = StuckSteps(store.experiment_id, database=database, notifier=Notifier(), clock=clock)

    def failed(failure: Exception) -> str:
        asyncio.run(stuck.failed(failure, task="steps"))
        return store.experiment().warning

    assert failed(UnavailableError("searcher does not answer")) == "of before"
    clock.advance(SHOWN_AFTER_SECONDS)
    shown = "it does not go on, and the server tries again: "
    assert failed(UnavailableError("searcher does not answer")) == f"{shown}searcher does not answer"
    assert failed(KeyError("x")) == f"{shown}KeyError: 'x'"
    asyncio.run(stuck.succeeded(task="steps"))
    assert not store.experiment().warning
    assert not failed(UnavailableError("again")), "the time begins anew"


def test_a_success_takes_back_what_was_shown_before_a_restart_and_no_other_warning(
    database: Database,
) -> None:
    store, clock = Store(database.engine), ManualClock()

    def restarted() -> StuckSteps:
        return StuckSteps(store.experiment_id, database=database, notifier=Notifier(), clock=clock)

    async def fail(stuck: StuckSteps) -> None:
        await stuck.failed(UnavailableError("searcher does not answer"), task="steps")
        clock.advance(SHOWN_AFTER_SECONDS)
        await stuck.failed(UnavailableError("searcher does not answer"), task="steps")

    asyncio.run(fail(restarted()))
    assert store.experiment().warning
    asyncio.run(restarted().succeeded(task="steps"))
    assert not store.experiment().warning

    stuck = restarted()
    asyncio.run(fail(stuck))
    store.run(lambda c: experiments.update(c, store.experiment_id, warning="of the metric"))
    asyncio.run(stuck.succeeded(task="steps"))
    asyncio.run(restarted().succeeded(task="steps"))
    assert store.experiment().warning == "of the metric"


def test_what_one_task_shows_is_not_taken_back_by_the_success_of_another(database: Database) -> None:
    store, clock = Store(database.engine), ManualClock()
    stuck = StuckSteps(store.experiment_id, database=database, notifier=Notifier(), clock=clock)

    async def body() -> None:
        for _ in range(2):
            await stuck.failed(KeyError("x"), task="actions")
            await stuck.succeeded(task="steps")
            clock.advance(SHOWN_AFTER_SECONDS)

    asyncio.run(body())
    assert store.experiment().warning == "it does not go on, and the server tries again: KeyError: 'x'"
    asyncio.run(stuck.succeeded(task="actions"))
    assert not store.experiment().warning


class BrokenSearcher:
    """Tells the actions of a search, and nothing of the search."""

    async def GetSearch(self, request: Any) -> None:  # noqa: N802 - the contract names it
        raise KeyError(request.search_id)


def test_actions_that_cannot_be_applied_are_shown(database: Database) -> None:
    store, clock = Store(database.engine), ManualClock()
    controller = ExperimentController(
        store.experiment_id,
        context(database, clock),
        clients=SimpleNamespace(searcher=BrokenSearcher()),  # type: ignore[arg-type]
        lease_ttl=30.0,
        machines=NoMachines(),
        copy_metrics=copy_nothing,
        judge=judge_nothing,
    )
    batch = [action_pb2.Action(sequence=1, shutdown=action_pb2.Action.Shutdown())]

    async def body() -> None:
        for _ in range(2):
            with pytest.raises(KeyError):
                await controller._apply(batch)
            clock.advance(SHOWN_AFTER_SECONDS)

    asyncio.run(body())
    shown = f"it does not go on, and the server tries again: KeyError: '{store.experiment_id}'"
    assert store.experiment().warning == shown


def test_a_search_that_a_defect_keeps_from_being_created_ends_the_experiment(database: Database) -> None:
    store, asked = Store(database.engine), []
    config = parse_config(
        {
            "name": "defect",
            "entrypoint": "python3 train.py",
            "searcher": {"name": "single", "metric": "loss", "max_length": 8},
            "checkpoint_storage": {"type": "directory", "container_path": "/tmp/checkpoints"},
            "reproducibility": {"experiment_seed": 1},
        }
    ).to_dict()
    store.run(lambda c: experiments.update(c, store.experiment_id, config=config, search_created=False))

    class Searcher:
        async def CreateSearch(self, request: Any) -> None:  # noqa: N802 - the contract names it
            asked.append(request)
            raise InternalError("the method's build() raised ZeroDivisionError")

    async def body() -> None:
        controller = ExperimentController(
            store.experiment_id,
            context(database, ManualClock()),
            clients=SimpleNamespace(searcher=Searcher()),  # type: ignore[arg-type]
            lease_ttl=30.0,
            machines=NoMachines(),
            copy_metrics=copy_nothing,
            judge=judge_nothing,
        )
        for _ in range(MOST_DEFECTS - 1):
            with pytest.raises(InternalError):
                await controller._ensure_search(store.experiment())
        await controller._ensure_search(store.experiment())

    asyncio.run(body())
    assert len(asked) == MOST_DEFECTS
    ended = store.experiment()
    assert ended.state in {ExperimentState.STOPPING_ERROR, ExperimentState.ERROR}
    assert ended.failure == (
        f"the search could not be created in {MOST_DEFECTS} attempts: "
        "the method's build() raised ZeroDivisionError"
    )
