"""What every engine must do, as cases that each engine's tests inherit and run on the real thing."""

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
    DeliversLines,
    Engine,
    EngineEvent,
    HasBacklog,
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

    async def ended(self, count: int = 1) -> list[ContainerReport]:
        """Waits for the ends of containers, and returns them by rank."""
        await wait_until_async(lambda: len(self.ends()) >= count, seconds=SECONDS, what="the end")
        return sorted(self.ends(), key=lambda report: report.container_rank)

    async def states(self, allocation_id: str = ALLOCATION) -> list[ContainerState]:
        """What the engine says of an allocation now."""
        return [report.state for report in await self.engine.inspect(allocation_id)]


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
    asyncio.run(asyncio.wait_for(body(), 2 * SECONDS))


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


class EngineContract:
    """The cases. A subclass gives the fixture ``engine``."""

    def test_what_was_never_launched_is_unknown_and_everything_may_be_asked_of_it(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            async with engine_session(engine) as session:
                assert await session.engine.inspect(ALLOCATION) == []
                await session.engine.stop(ALLOCATION, grace=0.0)
                await session.engine.kill(ALLOCATION)
                await session.engine.release(ALLOCATION)
                assert ALLOCATION not in await session.engine.leftovers()

        scenario(body)

    def test_an_allocation_that_is_launched_several_times_at_once_runs_once(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    spec = engine.spec(plane)
                    await asyncio.gather(*(session.engine.launch(spec) for _ in range(4)))
                    await seen(plane, "training")
                    await session.engine.launch(spec)
                    assert plane.calls.count("GetLaunchSpec") == 1
                    assert await session.states() == [ContainerState.RUNNING]

        scenario(body)

    def test_the_exit_code_is_told_once_and_what_ended_is_not_launched_again(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane("echo done; exit 3") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    (report,) = await session.ended()
                    assert (report.allocation_id, report.container_rank) == (ALLOCATION, 0)
                    assert report.exit is not None
                    assert report.exit.exit_code == 3
                    await session.engine.launch(engine.spec(plane))
                    assert await session.states() == [ContainerState.ENDED]
                    assert plane.calls.count("GetLaunchSpec") == 1
                    assert plane.text() == ["done"]

        scenario(body)

    def test_the_next_life_of_the_control_plane_finds_what_runs_and_hears_of_its_end(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                    async with engine_session(engine) as second:
                        assert await second.states() == [ContainerState.RUNNING]
                        await second.engine.launch(engine.spec(plane))
                        assert not second.ends()
                        await second.engine.kill(ALLOCATION)
                        (report,) = await second.ended()
                        assert report.lost
                    assert plane.calls.count("GetLaunchSpec") == 1

        scenario(body)

    def test_what_ended_while_nobody_watched_is_found(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; exit 5") as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                    await asyncio.to_thread(plane.wait_for, lambda: plane.exits, seconds=SECONDS)
                    async with engine_session(engine) as second:

                        async def over() -> bool:
                            return await second.states() == [ContainerState.ENDED]

                        await until(over, "the end to be known")
                        (report,) = await second.engine.inspect(ALLOCATION)
                        assert report.exit is not None
                        assert report.exit.exit_code == 5

        scenario(body)

    def test_a_stop_lets_a_run_exit_by_itself(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN, preemption_timeout=0.2) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.engine.stop(ALLOCATION, grace=SECONDS)
                    (report,) = await session.ended()
                    assert report.exit is not None, "its supervisor saw its end"
                    assert plane.preemptions, "the control plane heard of it first"

        scenario(body)

    def test_a_stop_kills_what_outlasts_its_grace(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(STUBBORN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.engine.stop(ALLOCATION, grace=0.5)
                    (report,) = await session.ended()
                    assert report.lost

        scenario(body)

    def test_a_kill_ends_everything_and_may_be_repeated(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(STUBBORN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.engine.kill(ALLOCATION)
                    (report,) = await session.ended()
                    assert report.lost
                    await session.engine.kill(ALLOCATION)
                    assert await session.states() == [ContainerState.ENDED]

        scenario(body)

    def test_a_lost_supervisor_is_noticed(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await engine.lose(ALLOCATION)
                    (report,) = await session.ended()
                    assert report.lost

        scenario(body)

    def test_lines_that_waited_for_the_services_are_sent_after_the_release(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; echo last words; exit 0") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    plane.takes_lines = False
                    await session.ended()
                    assert "last words" not in plane.text()
                    plane.takes_lines = True
                    await session.engine.release(ALLOCATION, token="token-fresh")
                    await seen(plane, "last words")

        scenario(body)

    def test_an_allocation_is_left_over_until_it_is_released(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo done") as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await first.ended()
                    async with engine_session(engine) as second:
                        assert await second.engine.leftovers() == [ALLOCATION]
                        await second.engine.release(ALLOCATION, token="token-fresh")
                        assert await second.engine.leftovers() == []

                        async def gone() -> bool:
                            return not await engine.resources()

                        await until(gone, "everything to be removed")
                        assert await second.engine.inspect(ALLOCATION) == []

        scenario(body)

    def test_an_allocation_may_have_several_containers_which_find_each_other(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            script = "echo rank $DET_CONTAINER_RANK; exit 0"
            with engine.control_plane(script, container_count=2, collective_key="k") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane, containers=2))
                    reports = await session.ended(2)
                    assert [report.container_rank for report in reports] == [0, 1]
                    assert all(report.exit is not None for report in reports)
                    assert {request.address for request in plane.announced.values()} != {""}
                    assert len(plane.announced) == 2

        scenario(body)


class LinesContract:
    """The cases of engines that deliver lines on demand. A subclass gives the fixture ``engine``."""

    def test_nothing_is_delivered_of_what_was_never_launched(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            async with engine_session(engine) as session:
                assert isinstance(session.engine, DeliversLines)
                assert await session.engine.deliver_lines({ALLOCATION: ""})

        scenario(body)

    def test_the_lines_of_a_lost_supervisor_arrive(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            script = "for i in $(seq 200); do echo line $i; done; " + TRAIN
            with engine.control_plane(script) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await engine.lose(ALLOCATION)
                    (report,) = await session.ended()
                    assert report.lost

                    async def arrived() -> bool:
                        # On a busy machine the sender may begin only after the time for which this waits.
                        assert isinstance(session.engine, DeliversLines)
                        return await session.engine.deliver_lines({ALLOCATION: "token-fresh"})

                    await until(arrived, "its lines")
                    numbered = [text for text in plane.text() if text.startswith("line ")]
                    assert numbered == [f"line {number}" for number in range(1, 201)]

        scenario(body)


class BacklogContract:
    """The cases of engines that know what waits there. A subclass gives the fixture ``engine``."""

    def test_what_waits_for_the_services_is_known_until_it_arrives(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; echo last words; exit 0") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    backlog = session.engine
                    assert isinstance(backlog, HasBacklog)
                    assert list(await backlog.unreported()) == []
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.ended()
                    await session.engine.release(ALLOCATION, token="token-fresh")

                    async def arrived() -> bool:
                        return not await backlog.unreported() and not await backlog.backlog_seconds()

                    await until(arrived, "everything to arrive")
                    assert "last words" in plane.text()

        scenario(body)
