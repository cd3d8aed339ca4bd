"""An engine that is looked at: runs every time, nodes now and then, and pools told of when they changed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from resolute.errors import UnavailableError
from resolute_engines.kit.polling import Polling
from resolute_engines.protocol import CapacityChange, ContainerReport, ContainerState, Pool, Slot, SlotKind

EMPTY = {"a": Pool(name="a"), "b": Pool(name="b")}
GROWN = {"a": Pool(name="a"), "b": Pool(name="b", slots=(Slot(0, SlotKind.CPU),))}


class Engine:
    """Counts the looks; its runs change with every one of them."""

    def __init__(self) -> None:
        self.found: Mapping[str, Pool] = EMPTY
        self.looks: list[str] = []
        self.away = False
        self.polling = Polling(
            EMPTY,
            look_at_runs=self._look_at_runs,
            look_at_nodes=self._look_at_nodes,
            seconds=0.001,
            looks_a_capacity=3,
        )

    async def _look_at_runs(self) -> Sequence[ContainerReport]:
        self.looks.append("runs")
        if self.away:
            raise UnavailableError("the engine is away")
        return [self.report(len(self.looks))]

    async def _look_at_nodes(self) -> Mapping[str, Pool]:
        self.looks.append("nodes")
        return self.found

    @staticmethod
    def report(rank: int) -> ContainerReport:
        return ContainerReport(allocation_id="one", container_rank=rank, state=ContainerState.RUNNING)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, timeout=60))


def test_runs_are_looked_at_every_time_and_nodes_now_and_then() -> None:
    async def scenario() -> None:
        engine = Engine()
        async with aclosing(engine.polling.events()) as events:
            for _ in range(4):
                await anext(events)
        assert engine.looks == ["nodes", "runs", "runs", "runs", "nodes", "runs"]

    run(scenario())


def test_pools_that_changed_are_named_once() -> None:
    async def scenario() -> None:
        engine = Engine()
        engine.found = GROWN
        async with aclosing(engine.polling.events()) as events:
            found = [await anext(events) for _ in range(5)]
        assert [event for event in found if isinstance(event, CapacityChange)] == [
            CapacityChange(pools=("b",))
        ]
        assert engine.polling.pools == tuple(GROWN.values())

    run(scenario())


def test_looks_begin_again_after_a_failure_and_end_when_closed() -> None:
    async def scenario() -> None:
        engine = Engine()
        engine.away = True
        with pytest.raises(UnavailableError):
            await anext(engine.polling.events())
        engine.away = False
        async for _ in engine.polling.events():
            engine.polling.close()
        assert engine.polling.closed

    run(scenario())
