"""How an experiment follows the actions of its search while the searcher service comes and goes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from contract.experiments.lifecycle.test_lifecycle import Store
from contract.experiments.runs.test_exit_policy import NoMachines
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context, copy_nothing, judge_nothing

from resolute.api.searcher.v1 import action_pb2, searcher_service_pb2
from resolute.contracts.values import to_value
from resolute.errors import UnavailableError
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.store import experiments
from resolute_experiments.topics import Topic
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier, Subscription

FAILURES = 8
LONGEST_FIRST_PAUSE = 0.3


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield made
    made.close()


class Searcher:
    """Is away for some calls, then gives one action and breaks off."""

    def __init__(self) -> None:
        self.calls = 0

    async def FollowActions(  # noqa: N802
        self, request: Any
    ) -> AsyncIterator[searcher_service_pb2.FollowActionsResponse]:
        self.calls += 1
        if self.calls > FAILURES:
            trial = action_pb2.Action.CreateTrial(
                trial_key=str(uuid.uuid4()),
                trial_id=str(uuid.uuid4()),
                hparams=to_value({"lr": 0.1}),
                trial_seed=7,
            )
            action = action_pb2.Action(sequence=1, create_trial=trial)
            yield searcher_service_pb2.FollowActionsResponse(actions=[action])
        raise UnavailableError("the searcher service restarts")

    async def AcknowledgeActions(  # noqa: N802
        self, request: Any
    ) -> searcher_service_pb2.AcknowledgeActionsResponse:
        return searcher_service_pb2.AcknowledgeActionsResponse()


class Immediate(Notifier[Topic]):
    """Its waits take no time; the notifier closes after some of them."""

    def __init__(self, *, waits: int) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._waits = waits

    @contextmanager
    def subscribe(self, *_: Topic) -> Iterator[Subscription[Topic]]:
        notifier = self

        class Recorded(Subscription[Topic]):
            async def wait(self, seconds: float) -> frozenset[Topic]:
                notifier.pauses.append(seconds)
                if len(notifier.pauses) == notifier._waits:
                    notifier.close()
                return frozenset()

        yield Recorded()


def test_an_outage_after_the_searcher_was_back_begins_with_a_short_pause(database: Database) -> None:
    store, searcher, notifier = Store(database.engine), Searcher(), Immediate(waits=FAILURES + 1)
    store.run(lambda c: experiments.update(c, store.experiment_id, search_created=True))

    async def body() -> None:
        controller = ExperimentController(
            store.experiment_id,
            context(database, ManualClock(), notifier=notifier),
            clients=SimpleNamespace(searcher=searcher),  # type: ignore[arg-type]
            lease_ttl=30.0,
            machines=NoMachines(),
            copy_metrics=copy_nothing,
            judge=judge_nothing,
        )
        await controller._follow_actions()

    asyncio.run(body())
    assert notifier.pauses[FAILURES - 1] > LONGEST_FIRST_PAUSE
    assert notifier.pauses[FAILURES] <= LONGEST_FIRST_PAUSE
