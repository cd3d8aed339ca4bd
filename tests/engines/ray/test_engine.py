"""The contract of engines, kept by a real Ray of two nodes; and what is Ray's own."""

from __future__ import annotations

import asyncio
import operator
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.clusters.control_plane import ControlPlane, control_plane
from support.daemons.ray import CPUS, PYTHON, RayCluster
from support.engines.contract import BacklogContract, EngineContract, LinesContract, QueueContract
from support.engines.session import (
    ALLOCATION,
    SECONDS,
    STUBBORN,
    TRAIN,
    EngineSession,
    cleared,
    engine_session,
    scenario,
    seen,
    until,
)
from support.engines.submissions import Submissions
from support.waiting import wait_until_async

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.errors import UnavailableError
from resolute_engines.environment import EngineEnvironment, SupervisorTerms
from resolute_engines.protocol import (
    AllocationSpec,
    CapacityChange,
    ContainerState,
    HasBacklog,
    Placement,
)
from resolute_engines.ray.client import Driver
from resolute_engines.ray.engine import RayEngine, RayNodes
from resolute_engines.ray.settings import RayPoolOptions
from resolute_engines.settings import EngineSettings, PoolSettings


class RayUnderTest:
    """Allocations of one test, whose names no other test uses."""

    @property
    def call(self) -> Callable[..., Any]:
        """The method by which it talks to the engine."""
        return Driver.call

    def __init__(self, ray: RayCluster, directory: Path, **pool: Any) -> None:
        directory.mkdir(exist_ok=True)
        self._ray = ray
        self.directory = directory
        self.python = sys.executable
        self._pool = RayPoolOptions.model_validate({"slot_type": "cpu", "slots_per_node": 1, **pool})
        self._cluster_id = uuid.uuid4().hex
        self.prefix = f"resolute-{self._cluster_id[:8]}-"

    @property
    def opened_by(self) -> tuple[EngineSettings, EngineEnvironment]:
        """What opens the same."""
        options = {
            "address": self._ray.address,
            "directory": str(self.directory),
            "python": self.python,
            "driver_python": str(PYTHON),
        }
        pool = PoolSettings(
            name="batch", options=self._pool.model_dump(exclude_unset=True), where="resource_pools[0]"
        )
        environment = EngineEnvironment(
            cluster_id=self._cluster_id,
            address="",
            tls=None,
            outage_timeout=3600.0,
            log_wait=1.0,
            runs_directory=self.directory,
            slots=None,
            nodes=1,
        )
        return EngineSettings(name="ray", type="ray", options=options, pools=(pool,)), environment

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """One on the loopback interface, which the nodes are too."""
        return control_plane(script, **changes)

    def driver(self, **changes: Any) -> Driver:
        """Asks the cluster."""
        return Driver(self._ray.address, prefix=self.prefix, python=str(PYTHON), **changes)

    def open(self) -> RayEngine:
        """A pool of both nodes."""
        return RayEngine(
            self.driver(),
            pools={"batch": self._pool},
            terms=SupervisorTerms(log_wait=1.0),
            nodes=RayNodes(python=self.python, directory=str(self.directory)),
            poll_seconds=0.2,
        )

    def spec(self, plane: ControlPlane, *, containers: int = 1, slots: int = 1) -> AllocationSpec:
        """Some slots for each container."""
        return AllocationSpec(
            allocation_id=plane.spec.allocation_id,
            placements=tuple(tuple(range(rank * slots, (rank + 1) * slots)) for rank in range(containers)),
            address=plane.address,
            token="token-0",
            pool="batch",
        )

    async def lose(self, allocation_id: str) -> None:
        """Kills the supervisors alone."""
        self.supervisor().kill()

    def supervisor(self) -> psutil.Process:
        """The only supervisor."""
        (folder,) = self.directory.iterdir()
        supervisor = ProcessIdentity.from_json(read_json(RunDirectory(folder / "run").supervisor_file))
        assert supervisor is not None
        return psutil.Process(supervisor.pid)

    async def resources(self) -> Sequence[str]:
        """The folders on the nodes, and what Ray has."""
        driver = self.driver()
        try:
            return [*(folder.name for folder in self.directory.iterdir()), *await driver.call("names")]
        finally:
            await driver.close()


class TestRay(EngineContract, LinesContract, BacklogContract, QueueContract, Submissions):
    """A Ray of two nodes."""

    calls = 1

    @pytest.fixture
    def engine(self, ray: RayCluster, tmp_path: Path) -> RayUnderTest:
        """Its run directories."""
        return RayUnderTest(ray, tmp_path / "runs")

    @pytest.fixture
    def never_fits(self) -> tuple[int, str]:
        """Containers are on different nodes, of which there are two."""
        return 3, "INFEASIBLE: "

    def test_capacity_is_that_of_the_nodes_that_have_what_the_pool_wants(
        self, ray: RayCluster, engine: RayUnderTest, tmp_path: Path
    ) -> None:
        async def body() -> None:
            other = RayUnderTest(ray, tmp_path / "other", slots_per_node=2, resources={"worker": 1})
            for each, slots, nodes in ((engine, 2 * CPUS, {0, 1}), (other, CPUS, {0})):
                async with engine_session(each) as session:
                    await wait_until_async(
                        partial(operator.contains, session.events, CapacityChange(pools=("batch",))),
                        seconds=SECONDS,
                        what="nodes",
                    )
                    (pool,) = session.engine.pools()
                    assert (pool.placement, len(pool.slots)) == (Placement.ENGINE, slots)
                    assert (pool.most_slots, {slot.node for slot in pool.slots}) == (slots, nodes)

        scenario(body)

    def test_run_that_waits_for_others_says_so(
        self, ray: RayCluster, engine: RayUnderTest, tmp_path: Path
    ) -> None:
        full = RayUnderTest(ray, tmp_path / "full")

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane, full.control_plane(TRAIN) as theirs:
                async with (
                    cleared(engine),
                    cleared(full),
                    engine_session(engine) as session,
                    engine_session(full) as holder,
                ):
                    await holder.engine.launch(full.spec(theirs, containers=2, slots=CPUS))
                    await until(lambda: _in_state(holder, ContainerState.RUNNING), "the nodes to be full")
                    await session.engine.launch(engine.spec(plane))

                    async def waits() -> bool:
                        (report,) = await session.engine.inspect(ALLOCATION)
                        waiting = report.state is ContainerState.QUEUED
                        return waiting and report.reason.startswith("NO_RESOURCES: ")

                    await until(waits, "the reason of Ray")

        scenario(body)

    @pytest.mark.parametrize(
        ("missing", "complaint"),
        [("python", "No such file or directory"), ("resolute", "No module named 'resolute")],
    )
    def test_supervisor_that_cannot_start_is_the_failure_of_the_run(
        self, engine: RayUnderTest, tmp_path: Path, missing: str, complaint: str
    ) -> None:
        program = tmp_path / "python"
        if missing == "resolute":
            # An interpreter that does not find what is installed.
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
            program.chmod(0o755)
        engine.python = str(program)

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    (report,) = await session.ended()
                    assert report.exit is not None
                    assert report.exit.failed_before_entrypoint
                    assert complaint in report.exit.failure

        scenario(body)

    def test_a_driver_that_was_killed_is_started_again_and_finds_what_runs(
        self, engine: RayUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine):
                    manager = engine.open()
                    try:
                        await manager.launch(engine.spec(plane))
                        await seen(plane, "training")
                        _driver_of(engine).kill()
                        with pytest.raises(UnavailableError, match="the driver of Ray"):
                            await manager.inspect(ALLOCATION)
                        (report,) = await manager.inspect(ALLOCATION)
                        assert report.state is ContainerState.RUNNING
                    finally:
                        await manager.close()
                    assert plane.calls.count("GetLaunchSpec") == 1

        scenario(body)

    def test_a_driver_that_is_silent_is_ended_at_its_deadline(self, engine: RayUnderTest) -> None:
        async def body() -> None:
            driver = engine.driver(deadline_seconds=3.0)
            try:
                with suppress(UnavailableError):
                    await driver.call("names")
                await asyncio.wait_for(_answers(driver), SECONDS)
                process = _driver_of(engine)
                process.suspend()
                with pytest.raises(UnavailableError, match="did not answer in 3 s"):
                    await driver.call("names")
                assert not process.is_running()
            finally:
                await driver.close()

        scenario(body)

    def test_a_shim_that_was_lost_leaves_nothing_running_and_its_lines_arrive(
        self, engine: RayUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    supervisor = engine.supervisor()
                    shim = supervisor.parent()
                    assert shim is not None
                    assert "resolute_launch.actor" in shim.cmdline()
                    shim.kill()
                    (report,) = await session.ended()
                    assert report.lost
                    assert _is_gone(supervisor)
                    assert isinstance(session.engine, HasBacklog)
                    assert await session.engine.backlog.deliver_lines({ALLOCATION: "token-fresh"})

        scenario(body)

    def test_run_of_a_node_that_died_is_lost_with_that_reason(self, ray: RayCluster, tmp_path: Path) -> None:
        engine = RayUnderTest(ray, tmp_path / "runs", resources={"worker": 1})

        async def body() -> None:
            with engine.control_plane(STUBBORN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    supervisor = engine.supervisor()
                    await asyncio.to_thread(ray.kill, "worker")
                    try:
                        (report,) = await session.ended()
                        assert report.lost
                        assert report.reason == "its node of Ray is gone"
                        # The machine lives on, and so did the shim, which ended what it kept.
                        await wait_until_async(
                            lambda: _is_gone(supervisor), seconds=SECONDS, what="its supervisor's end"
                        )
                    finally:
                        await asyncio.to_thread(ray.start_worker)

        scenario(body)

    def test_what_a_run_left_on_a_machine_that_died_is_sent_when_that_is_a_node_again(
        self, ray: RayCluster, tmp_path: Path
    ) -> None:
        engine = RayUnderTest(ray, tmp_path / "runs", resources={"worker": 1})
        said = tmp_path / "say"
        script = f"echo training; until [ -e {said} ]; do sleep 0.05; done; echo last words; {TRAIN}"

        async def body() -> None:
            with engine.control_plane(script) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    plane.takes_lines = False
                    said.touch()
                    await wait_until_async(
                        lambda: _spooled(engine, b"last words"), seconds=SECONDS, what="the line on disk"
                    )
                    shim = engine.supervisor().parent()
                    assert shim is not None
                    await asyncio.to_thread(ray.kill_machine, "worker")
                    try:
                        (report,) = await session.ended()
                        assert report.lost
                        assert _is_gone(shim), "nobody is there to send"
                        plane.takes_lines = True
                    finally:
                        await asyncio.to_thread(ray.start_worker)
                    await seen(plane, "last words")

        scenario(body)

    def test_runs_end_with_a_head_that_died_and_its_successor_knows_nothing_of_them(
        self, ray: RayCluster, engine: RayUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(STUBBORN) as plane:
                manager = engine.open()
                try:
                    await manager.launch(engine.spec(plane))
                    await seen(plane, "training")
                    supervisor = engine.supervisor()
                    await asyncio.to_thread(ray.kill, "head")
                    try:
                        await asyncio.to_thread(ray.kill, "worker")
                        with pytest.raises(UnavailableError):
                            await manager.inspect(ALLOCATION)
                        await wait_until_async(
                            lambda: _is_gone(supervisor), seconds=SECONDS, what="its supervisor's end"
                        )
                    finally:
                        await asyncio.to_thread(ray.start_head)
                        await asyncio.to_thread(ray.start_worker)
                    await until(lambda: _knows_nothing(manager), "the new head")
                finally:
                    await manager.close()

        scenario(body)


async def _in_state(session: EngineSession, state: ContainerState) -> bool:
    return set(await session.states()) == {state}


async def _answers(driver: Driver) -> None:
    while True:
        with suppress(UnavailableError):
            await driver.call("names")
            return


async def _knows_nothing(manager: RayEngine) -> bool:
    try:
        return await manager.inspect(ALLOCATION) == []
    except UnavailableError:
        return False


def _is_gone(process: psutil.Process) -> bool:
    """Whether a process has ended: as an orphan it may wait for whoever is the first of this machine."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


def _driver_of(engine: RayUnderTest) -> psutil.Process:
    """The driver that this process has started for an engine."""
    (found,) = [child for child in psutil.Process().children() if engine.prefix in child.cmdline()]
    return found


def _spooled(engine: RayUnderTest, words: bytes) -> bool:
    """Whether the only run has written some words into its spool."""
    return any(words in path.read_bytes() for path in engine.directory.glob("*/run/spool/*.logs"))
