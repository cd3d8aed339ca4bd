"""What the service does about runs that an earlier life left behind, and containers that a failure did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from support.clocks import ManualClock
from support.engines.rows import EXPERIMENT, RUN, TRIAL, Tokens, no_directory
from support.waiting import wait_until_async

from resolute.errors import UnavailableError
from resolute_engines.local.engine import LocalEngine
from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    EngineEvent,
    EvictionNotice,
)
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.allocations.engine_runs import EngineRuns
from resolute_experiments.allocations.fleet import Fleet
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.context import ServiceContext
from resolute_experiments.exits.incarnation import lose_runs
from resolute_experiments.exits.summary import summarize_exit
from resolute_experiments.scheduling.scheduler import Scheduler
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.states import RunOutcome
from resolute_experiments.store import experiments, runs, schema, trials
from resolute_experiments.timing import Timing
from resolute_serving.database.engine import Database, Work
from resolute_serving.notifier import Notifier
from resolute_serving.server.bootstrap import upgrade

T = TypeVar("T")


class TwoNodes(LocalEngine):
    """Two nodes of this machine; notes what it is told to end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, slots=2, nodes=2)
        self.killed: list[str] = []

    async def kill(self, allocation_id: str) -> None:
        """Ends the processes that the allocation has here: none."""
        self.killed.append(allocation_id)
        await super().kill(allocation_id)


class RecordingManager(LocalEngine):
    """Two slots; records what it is told to launch instead of starting processes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, slots=2)
        self.launched: list[str] = []

    async def launch(self, spec: AllocationSpec) -> None:
        """Records an allocation."""
        self.launched.append(spec.allocation_id)


class FailingWatch(RecordingManager):
    """The first watches over its containers fail."""

    def __init__(self, folder: Path, *, failures: int) -> None:
        super().__init__(folder)
        self.failures = failures
        self.taken = False

    async def watch(self) -> AsyncIterator[ContainerReport]:
        """Fails, and reports the loss of a container at last."""
        if self.failures:
            self.failures -= 1
            raise OSError("the watch broke")
        yield ContainerReport(allocation_id="t.1", container_rank=0, state=ContainerState.ENDED)
        self.taken = True
        async for report in super().watch():
            yield report


class DatabaseThatIsAway(Database):
    """Takes no writes for as many times as it is told to."""

    times = 0

    async def write(self, work: Work[T], *, order: str = "") -> T:
        if self.times:
            self.times -= 1
            raise UnavailableError("the database is away")
        return await super().write(work, order=order)


@asynccontextmanager
async def served(
    manager: LocalEngine, tmp_path: Path, clock: ManualClock, tokens: Tokens | None = None
) -> AsyncIterator[EngineRuns]:
    """The machines of a service that has one trial."""
    url = f"sqlite:///{tmp_path}/experiments.sqlite"
    upgrade(BLUEPRINT, url)
    database = DatabaseThatIsAway(url, name="experiments")
    await database.write(lambda c: workspaces.create(c, "w", owner="ada", now=1.0))
    await database.write(lambda c: experiments.insert(c, EXPERIMENT, b"code"))
    await database.write(lambda c: trials.insert(c, TRIAL))
    try:
        yield EngineRuns(
            manager,
            ServiceContext(
                database=database,
                notifier=Notifier(),
                clock=clock,
                cluster_id="cluster",
                preemption_timeout=60.0,
            ),
            name="local",
            leases=Leases(clock, ttl=30.0),
            specs=RunSpecs(
                database=database,
                make_directory=no_directory,
                issue_token=(tokens or Tokens()).issue,
                address="127.0.0.1:1",
            ),
            spans=RunSpans({}),
        )
    finally:
        await manager.close()
        database.close()


@asynccontextmanager
async def fleet(tmp_path: Path, *, settled: str) -> AsyncIterator[EngineRuns]:
    """The machines of a service that has one run, which was settled."""
    manager = LocalEngine(tmp_path / "runs", slots=1)
    run: dict[str, Any] = {**RUN, "run": 1, "allocation_id": settled, "outcome": RunOutcome.LOST.value}
    async with served(manager, tmp_path, ManualClock()) as machines:
        await machines._specs.database.write(lambda c: c.execute(sa.insert(schema.runs).values(**run)))
        yield machines


def test_a_run_that_was_settled_but_not_released_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    async def body() -> None:
        async with fleet(tmp_path, settled="t.1") as machines:
            (tmp_path / "runs/t.1/0").mkdir(parents=True)
            await machines.recover()
            await wait_until_async(lambda: not (tmp_path / "runs/t.1").exists())

    asyncio.run(asyncio.wait_for(body(), 60))


def test_what_is_left_of_a_run_that_nobody_knows_is_not_touched(tmp_path: Path) -> None:
    async def body() -> None:
        async with fleet(tmp_path, settled="t.1") as machines:
            (tmp_path / "runs/t.1/0").mkdir(parents=True)
            (tmp_path / "runs/stranger.1/0").mkdir(parents=True)
            await machines.recover()
            await wait_until_async(lambda: not (tmp_path / "runs/t.1").exists())
            assert (tmp_path / "runs/stranger.1/0").is_dir()

    asyncio.run(asyncio.wait_for(body(), 60))


@pytest.mark.parametrize("end", [{"exited": True, "exit_code": 3}, {"lost": True}])
def test_the_containers_that_a_failed_one_leaves_behind_are_ended_after_a_minute(
    tmp_path: Path, end: dict[str, Any]
) -> None:
    async def body() -> None:
        clock, manager = ManualClock(), TwoNodes(tmp_path / "runs")
        async with served(manager, tmp_path, clock) as machines:
            write = machines._specs.database.write
            run = {**RUN, "run": 1, "allocation_id": "t.1", "slot_ids": [0, 1], "outcome": "UNSPECIFIED"}
            await write(lambda c: runs.insert(c, run, placements=[[0], [1]]))
            clock.advance(100)
            await machines._enforce()
            # One that ended well is awaited by nobody: the other may have more to do.
            await write(lambda c: runs.update_container(c, "t.1", 0, exited=True, exit_code=0))
            await machines._enforce()
            clock.advance(100)
            await machines._enforce()
            assert manager.killed == []
            await write(lambda c: runs.update_container(c, "t.1", 0, exit_code=None, exited=False))
            await write(lambda c: runs.update_container(c, "t.1", 1, **end))
            await machines._enforce()
            clock.advance(59)
            await machines._enforce()
            assert manager.killed == []
            clock.advance(1)
            await machines._enforce()
            assert manager.killed == ["t.1"]
            marks = await machines._specs.database.read(lambda c: runs.containers_of(c, "t.1"))
            assert [container.straggler for container in marks] == [True, False]
            # Once both have ended there is nobody to end.
            await write(lambda c: runs.update_container(c, "t.1", 0, lost=True))
            await machines._enforce()
            assert manager.killed == ["t.1"]

    asyncio.run(asyncio.wait_for(body(), 60))


def test_a_container_that_fell_silent_is_lost_since_then_however_late_the_engine_notices(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        clock, manager = ManualClock(), TwoNodes(tmp_path / "runs")
        async with served(manager, tmp_path, clock) as machines:
            write, read = machines._specs.database.write, machines._specs.database.read
            run = {**RUN, "run": 1, "allocation_id": "t.1", "slot_ids": [0, 1], "outcome": "UNSPECIFIED"}
            await write(lambda c: runs.insert(c, run, placements=[[0], [1]]))
            await write(lambda c: c.execute(sa.update(schema.trials).values(state="RUNNING")))
            for rank in (0, 1):
                machines._leases.renew("t.1", rank=rank)
            last_heard = clock.time()
            # The other lives a little longer, and fails of it.
            clock.advance(8)
            await write(
                lambda c: runs.update_container(
                    c, "t.1", 1, exited=True, exit_code=1, ended_at=clock.time(), failure="peer is gone"
                )
            )
            while not manager.killed:
                await machines._enforce()
                clock.advance(5)
            for _ in range(60):
                await machines._enforce()
                clock.advance(5)
            await machines._watch.take(
                ContainerReport(allocation_id="t.1", container_rank=0, state=ContainerState.ENDED)
            )
            containers = await read(lambda c: runs.containers_of(c, "t.1"))
            assert [container.straggler for container in containers] == [False, False]
            assert containers[0].lost
            assert containers[0].ended_at == pytest.approx(last_heard)
            ended = await read(lambda c: runs.get(c, "t.1"))
            exit_, failure = summarize_exit(ended, containers, now=clock.time(), notice_seconds=30.0)
            assert (exit_.lost, failure) == (True, "")

    asyncio.run(asyncio.wait_for(body(), 60))


def test_runs_that_were_placed_but_not_launched_are_launched_by_the_next_pass(tmp_path: Path) -> None:
    async def body() -> None:
        clock, manager, tokens = ManualClock(), RecordingManager(tmp_path / "runs"), Tokens()
        async with served(manager, tmp_path, clock, tokens) as machines:
            database, notifier = machines._specs.database, machines._notifier
            for name in ("a", "b"):
                values = {
                    **TRIAL,
                    "id": name,
                    "request_id": name,
                    "state": "QUEUED",
                    "run": 0,
                    "closed": False,
                }
                await database.write(lambda c, values=values: trials.insert(c, values))  # type: ignore[misc]
            scheduler = Scheduler(
                database,
                fleet=Fleet([machines], default_pool="default"),
                notifier=notifier,
                clock=clock,
                wait_reasons=WaitReasons(),
                preemption_timeout=60.0,
                spans=RunSpans({}),
            )
            tokens.failures = 1
            with pytest.raises(UnavailableError, match="for a moment"):
                await scheduler.schedule()
            assert len(await database.read(runs.unfinalized)) == 2
            assert len(manager.launched) == 1, "the failure of one run does not concern the other"

            # The next look at the machines, or the next pass, launches it, and nothing is launched twice.
            await machines.launches.launch_pending()
            await machines.launches.launch_pending()
            assert sorted(manager.launched) == ["a.1", "b.1"]

    asyncio.run(asyncio.wait_for(body(), 60))


def launched_after_wakeup(machines: EngineRuns, manager: RecordingManager) -> bool:
    machines.wake()
    return bool(manager.launched)


def test_the_fleet_launches_what_is_pending_by_itself(tmp_path: Path) -> None:
    async def body() -> None:
        manager, tokens = RecordingManager(tmp_path / "runs"), Tokens()
        async with served(manager, tmp_path, ManualClock(), tokens) as machines:
            run = {**RUN, "run": 1, "allocation_id": "t.1", "outcome": "UNSPECIFIED"}
            await machines._specs.database.write(lambda c: runs.insert(c, run, placements=[[0]]))
            tokens.failures = 1
            running = asyncio.create_task(machines.run())
            await wait_until_async(lambda: launched_after_wakeup(machines, manager), what="the launch")
            machines._notifier.close()
            await running
            assert manager.launched == ["t.1"]

    asyncio.run(asyncio.wait_for(body(), 60))


def test_a_watch_that_fails_is_begun_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def body() -> None:
        manager = FailingWatch(tmp_path / "runs", failures=2)
        async with served(manager, tmp_path, ManualClock()) as machines:
            run = {**RUN, "run": 1, "allocation_id": "t.1", "outcome": "UNSPECIFIED"}
            await machines._specs.database.write(lambda c: runs.insert(c, run, placements=[[0]]))
            state = sa.update(schema.trials).values(state="RUNNING")
            await machines._specs.database.write(lambda c: c.execute(state))
            running = asyncio.create_task(machines.run())
            await wait_until_async(lambda: manager.taken, what="the report to be taken")
            machines._notifier.close()
            await running
            assert (await machines._specs.database.read(lambda c: runs.container(c, "t.1", 0))).lost

    asyncio.run(asyncio.wait_for(body(), 60))
    assert capsys.readouterr().out.count("the watch over the containers failed") == 1


def test_the_end_of_a_container_that_could_not_be_noted_is_noted_later(tmp_path: Path) -> None:
    """Nothing else tells it: its supervisor died before it said who it is."""

    async def body() -> None:
        manager = FailingWatch(tmp_path / "runs", failures=0)
        async with served(manager, tmp_path, ManualClock()) as machines:
            database = machines._specs.database
            assert isinstance(database, DatabaseThatIsAway)
            run = {**RUN, "run": 1, "allocation_id": "t.1", "outcome": "UNSPECIFIED"}
            await database.write(lambda c: runs.insert(c, run, placements=[[0]]))
            state = sa.update(schema.trials).values(state="RUNNING")
            await database.write(lambda c: c.execute(state))
            database.times = 2
            running = asyncio.create_task(machines.run())
            while not (await database.read(lambda c: runs.container(c, "t.1", 0))).lost:
                # Its next look comes at once instead of in five seconds.
                machines.wake()
                await asyncio.sleep(0.01)
            machines._notifier.close()
            await running
            assert database.times == 0

    asyncio.run(asyncio.wait_for(body(), 60))


class EvictingManager(RecordingManager):
    """Tells once that a run must go."""

    async def watch(self) -> AsyncIterator[EngineEvent]:  # type: ignore[override]  # the parent's are all reports
        """Tells it, and nothing else."""
        yield EvictionNotice(allocation_id="t.1", reason="the node is drained")
        async for report in super().watch():
            yield report


def test_that_a_run_must_go_is_noted_later_where_it_could_not_be_noted(tmp_path: Path) -> None:
    async def body() -> None:
        async with served(EvictingManager(tmp_path / "runs"), tmp_path, ManualClock()) as machines:
            database = machines._specs.database
            assert isinstance(database, DatabaseThatIsAway)
            run = {**RUN, "run": 1, "allocation_id": "t.1", "outcome": "UNSPECIFIED"}
            await database.write(lambda c: runs.insert(c, run, placements=[[0]]))
            state = sa.update(schema.trials).values(state="RUNNING")
            await database.write(lambda c: c.execute(state))
            database.times = 2
            running = asyncio.create_task(machines.run())
            while not (await database.read(lambda c: runs.get(c, "t.1"))).preempt:
                # Its next look comes at once instead of in five seconds.
                machines.wake()
                await asyncio.sleep(0.01)
            machines._notifier.close()
            await running
            assert database.times == 0

    asyncio.run(asyncio.wait_for(body(), 60))


def test_a_run_that_ran_and_left_nothing_here_is_lost_and_not_launched_again(tmp_path: Path) -> None:
    """Its databases were restored alone: launched again, it would begin at its first step."""

    async def body() -> None:
        manager = RecordingManager(tmp_path / "runs")
        async with served(manager, tmp_path, ManualClock()) as machines:
            database = machines._specs.database
            values = {**TRIAL, "id": "ran", "request_id": "ran", "state": "RUNNING", "closed": False}
            await database.write(lambda c: trials.insert(c, values))
            run = {**RUN, "trial_id": "ran", "run": 1, "allocation_id": "ran.1", "outcome": "UNSPECIFIED"}
            await database.write(lambda c: runs.insert(c, run, placements=[[0]]))
            await database.write(lambda c: runs.update_container(c, "ran.1", 0, pid=4711))
            await machines.launches.launch_pending()
            assert manager.launched == []
            assert (await database.read(lambda c: runs.container(c, "ran.1", 0))).lost

    asyncio.run(asyncio.wait_for(body(), 60))


def test_runs_of_an_earlier_incarnation_are_lost_and_not_launched(tmp_path: Path) -> None:
    async def body() -> None:
        manager, clock = RecordingManager(tmp_path / "runs"), ManualClock()
        async with served(manager, tmp_path, clock) as machines:
            database = machines._specs.database
            values = {**TRIAL, "id": "began", "request_id": "began", "state": "STARTING", "closed": False}
            await database.write(lambda c: trials.insert(c, values))
            run = {**RUN, "trial_id": "began", "run": 1, "allocation_id": "began.1", "outcome": "UNSPECIFIED"}
            await database.write(lambda c: runs.insert(c, run, placements=[[0]]))
            timing = Timing(now=clock.time(), preemption_timeout=0.0)
            for expected in (1, 1):
                assert await database.write(lambda c: lose_runs(c, timing)) == expected
            await machines.launches.launch_pending()
            assert manager.launched == []
            assert (await database.read(lambda c: runs.container(c, "began.1", 0))).lost

    asyncio.run(asyncio.wait_for(body(), 60))
