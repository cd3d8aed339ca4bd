"""The contract of engines, kept by a real Slurm of four nodes; and what is Slurm's own."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from support.clusters.control_plane import ControlPlane
from support.daemons.slurm import NODES, SlurmCluster
from support.engines.contract import (
    BacklogContract,
    EngineContract,
    FilesContract,
    LinesContract,
    QueueContract,
    TokenContract,
)
from support.engines.session import (
    ALLOCATION,
    SECONDS,
    TRAIN,
    EngineSession,
    cleared,
    engine_session,
    scenario,
    seen,
    until,
)
from support.engines.slurm import SlurmUnderTest
from support.engines.submissions import Submissions
from support.waiting import wait_until_async

from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_engines.protocol import (
    CapacityChange,
    ContainerState,
    Placement,
)
from resolute_engines.slurm.client import JobSpec

SAVES = 'trap "echo hit; exit 9" TERM; echo training; while [ ! -e go ]; do sleep 0.05; done; echo saved'
"""Dies of a SIGTERM; ends well, as after a checkpoint, once it is let."""


class TestSlurm(
    EngineContract, FilesContract, LinesContract, BacklogContract, QueueContract, TokenContract, Submissions
):
    """A Slurm of four nodes."""

    # A look, the submission, and what became of it.
    calls = 3

    @pytest.fixture
    def engine(self, slurm: SlurmCluster, tmp_path: Path) -> SlurmUnderTest:
        """Its run directories."""
        return SlurmUnderTest(slurm, tmp_path / "runs")

    @pytest.fixture
    def never_fits(self) -> tuple[int, str]:
        """One node more than the partition has."""
        return NODES + 1, "PartitionNodeLimit"

    def test_capacity_is_that_of_the_usable_nodes(self, engine: SlurmUnderTest) -> None:
        async def body() -> None:
            async with engine_session(engine) as session:
                await wait_until_async(
                    lambda: CapacityChange(pools=("batch",)) in session.events, seconds=SECONDS, what="nodes"
                )
                (pool,) = session.engine.pools()
                assert (pool.placement, len(pool.slots), pool.most_slots) == (Placement.ENGINE, NODES, NODES)

        scenario(body)

    def test_preempted_run_is_told_by_the_platform_and_goes_after_its_checkpoint(
        self, slurm: SlurmCluster, tmp_path: Path
    ) -> None:
        engine = SlurmUnderTest(slurm, tmp_path / "runs", partition="spot", sbatch_args=["--exclusive"])
        urgent = JobSpec(
            name=f"urgent-{uuid.uuid4().hex}",
            script="#!/bin/sh\nexec sleep 600\n",
            nodes=NODES,
            output="/dev/null",
            options=("--partition=urgent", "--exclusive"),
        )

        async def body() -> None:
            with engine.control_plane(SAVES) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await engine.client.submit(urgent)
                    try:
                        await _saves_once_it_was_told(plane, session, tmp_path / "runs")
                    finally:
                        await engine.client.cancel(urgent.name)

        scenario(body)

    def test_run_whose_time_ends_is_told_by_the_platform_and_goes_after_its_checkpoint(
        self, slurm: SlurmCluster, tmp_path: Path
    ) -> None:
        engine = SlurmUnderTest(slurm, tmp_path / "runs", preemption_grace=3600, sbatch_args=["--time=61"])

        async def body() -> None:
            with engine.control_plane(SAVES) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await _saves_once_it_was_told(plane, session, tmp_path / "runs")

        scenario(body)

    def test_job_that_has_no_run_directory_is_left_over_and_ends_when_it_is_released(
        self, engine: SlurmUnderTest
    ) -> None:
        async def body() -> None:
            # As a submission that arrives after its run was released, and its folder removed.
            name = f"{engine.cluster}-late.1"
            script = "#!/bin/sh\nexec sleep 600\n"
            await engine.client.submit(JobSpec(name=name, script=script, output="/dev/null"))
            async with engine_session(engine) as session:
                assert await session.engine.leftovers() == ["late.1"]
                await session.engine.release("late.1")

                async def gone() -> bool:
                    return not await engine.resources()

                await until(gone, "the end of the job")

        scenario(body)

    def test_supervisor_that_cannot_start_is_the_failure_of_the_run(
        self, engine: SlurmUnderTest, tmp_path: Path
    ) -> None:
        engine.python = str(tmp_path / "no-python")

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    (report,) = await session.ended()
                    assert report.exit is not None
                    assert report.exit.failed_before_entrypoint
                    assert "no-python" in report.exit.failure

        scenario(body)

    def test_refused_run_has_the_reason(self, engine: SlurmUnderTest) -> None:
        refused = {"slurm": {"sbatch_args": ["--constraint=none"]}}

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    with pytest.raises(FailedPreconditionError, match="Invalid feature specification"):
                        await session.engine.launch(engine.spec(plane, containers=2, config=refused))

        scenario(body)

    def test_gpus_that_slurm_lacks_are_refused(self, slurm: SlurmCluster, tmp_path: Path) -> None:
        engine = SlurmUnderTest(slurm, tmp_path / "runs", slot_type="gpu", gpu_type="a100")

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    with pytest.raises(FailedPreconditionError, match="gres"):
                        await session.engine.launch(engine.spec(plane))

        scenario(body)

    def test_runs_go_on_while_the_controller_of_slurm_is_away(
        self, slurm: SlurmCluster, engine: SlurmUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                    await asyncio.to_thread(slurm.stop_controller)
                    hasty = engine.open(deadline_seconds=5.0)
                    try:
                        with pytest.raises(UnavailableError):
                            await hasty.inspect(ALLOCATION)
                    finally:
                        await hasty.close()
                        await asyncio.to_thread(slurm.start_controller)

                    async def answers() -> bool:
                        try:
                            await engine.client.nodes()
                        except UnavailableError:
                            return False
                        return True

                    await until(answers, "the controller")
                    async with engine_session(engine) as second:
                        assert await second.states() == [ContainerState.RUNNING]
                        await second.engine.kill(ALLOCATION)
                        (report,) = await second.ended()
                        assert report.lost
                    assert plane.calls.count("GetLaunchSpec") == 1

        scenario(body)

    def test_run_of_a_node_that_died_is_lost_with_that_reason(
        self, slurm: SlurmCluster, tmp_path: Path
    ) -> None:
        engine = SlurmUnderTest(slurm, tmp_path / "runs", sbatch_args=["--nodelist=node3"])

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await asyncio.to_thread(slurm.kill, "node3")
                    try:
                        (report,) = await session.ended()
                        assert report.lost
                        assert "NODE_FAIL" in report.reason
                    finally:
                        await asyncio.to_thread(slurm.start_node, 3)

                    async def back() -> bool:
                        return all(node.usable for node in await engine.client.nodes())

                    await until(back, "the node's return")

        scenario(body)


async def _saves_once_it_was_told(plane: ControlPlane, session: EngineSession, runs: Path) -> None:
    await asyncio.to_thread(plane.wait_for, lambda: plane.preemptions, seconds=SECONDS)
    (runs / ALLOCATION / "0" / "work" / "go").touch()
    (report,) = await session.ended()
    assert report.exit is not None
    assert report.exit.exit_code == 0
    assert (plane.text()[0], plane.text()[-1]) == ("training", "saved")
    assert "hit" not in plane.text()
