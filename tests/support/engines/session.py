"""An engine under test, opened as one process of the control plane opens it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Protocol

from support.clusters.control_plane import ControlPlane
from support.waiting import wait_until_async

from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    Engine,
    EngineEvent,
)

ALLOCATION = "allocation-1"
SECONDS = 120.0
TRAIN = "echo training; while true; do sleep 0.05; done"
STUBBORN = "trap '' TERM; " + TRAIN


class EngineUnderTest(Protocol):
    """An engine, and what tests do to it from outside."""

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """A control plane that the engine's containers reach, with one run."""

    def open(self) -> Engine:
        """An object of the engine: each is one life of the control plane over what runs there."""

    def spec(self, plane: ControlPlane, *, containers: int = 1) -> AllocationSpec:
        """What launches the run of a control plane."""

    async def lose(self, allocation_id: str) -> None:
        """Ends the supervisors of an allocation as the loss of their machines does: without a word."""

    async def resources(self) -> Sequence[str]:
        """Names everything that the engine has of this test's allocations, however small."""


def spec_of(plane: ControlPlane, *, pool: str, containers: int, **changes: Any) -> AllocationSpec:
    """What launches the run of a control plane in a pool, with one slot for each container."""
    return AllocationSpec(
        allocation_id=plane.spec.allocation_id,
        placements=tuple((rank,) for rank in range(containers)),
        address=plane.address,
        token="token-0",
        pool=pool,
        **changes,
    )


class EngineSession:
    """An engine of one process of the control plane, and the events it reported."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.events: list[EngineEvent] = []

    def ends(self) -> list[ContainerReport]:
        """The reports of containers that ended."""
        reports = [event for event in self.events if isinstance(event, ContainerReport)]
        return [report for report in reports if report.state is ContainerState.ENDED]

    def queued(self) -> set[int]:
        """The ranks of containers that were reported as waiting in the engine's queue."""
        reports = [event for event in self.events if isinstance(event, ContainerReport)]
        return {report.container_rank for report in reports if report.state is ContainerState.QUEUED}

    async def ended(self, count: int = 1) -> list[ContainerReport]:
        """Waits for the ends of containers, and returns them by rank."""
        await wait_until_async(lambda: len(self.ends()) >= count, seconds=SECONDS, what="the end")
        return sorted(self.ends(), key=lambda report: report.container_rank)

    async def states(self, allocation_id: str = ALLOCATION) -> list[ContainerState]:
        """What the engine says of an allocation now."""
        return [report.state for report in await self.engine.inspect(allocation_id)]

    async def runs(self) -> None:
        """Waits until the only container runs by the engine's account, which may be later than its lines."""

        async def running() -> bool:
            return await self.states() == [ContainerState.RUNNING]

        await until(running, "the engine to say that the container runs")


@asynccontextmanager
async def engine_session(engine: EngineUnderTest) -> AsyncIterator[EngineSession]:
    """Opens an engine as one process of the control plane. At its end nothing is cleaned up."""
    session = EngineSession(engine.open())

    async def collect() -> None:
        async for event in session.engine.watch():
            session.events.append(event)

    collector = asyncio.create_task(collect())
    try:
        yield session
    finally:
        await session.engine.close()
        await collector


def scenario(body: Callable[[], Awaitable[None]]) -> None:
    """Runs one case within a bound."""
    asyncio.run(asyncio.wait_for(body(), 3 * SECONDS))


async def seen(plane: ControlPlane, text: str) -> None:
    """Waits for a line of the trial."""
    await asyncio.to_thread(plane.wait_for, lambda: text in plane.text(), seconds=SECONDS)


@asynccontextmanager
async def cleared(engine: EngineUnderTest, *others: str) -> AsyncIterator[None]:
    """Leaves nothing with the engine of the allocation and of others, and asks it whether that is so."""
    try:
        yield
    finally:
        async with engine_session(engine) as last:
            for allocation_id in (ALLOCATION, *others):
                await last.engine.kill(allocation_id)
                await last.engine.release(allocation_id)

            async def gone() -> bool:
                return not await engine.resources()

            await until(gone, "nothing to be left")


async def until(condition: Callable[[], Awaitable[object]], what: str) -> None:
    """Waits until something that is asked of the engine is so."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not await condition():
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.05)
