"""The local resource manager with real supervisors: they outlive it, and none is lost or started twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from faults.harness.cluster_processes import Role, processes_of
from support.clusters.control_plane import ControlPlane, control_plane
from support.waiting import wait_until_async

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.lock import is_locked
from resolute.contracts.spool.format import Line, Stdtype
from resolute.spool.line_writer import LineWriter
from resolute_experiments.resources.local.manager import LocalResourceManager
from resolute_experiments.resources.protocol import AllocationSpec, ContainerReport, ContainerState
from resolute_launch.container.lost_output import MARKER

ALLOCATION = "allocation-1"
TRAIN = "echo training; while true; do sleep 0.05; done"


def scenario(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 60))


def spec(plane: ControlPlane, *, placements: tuple[tuple[int, ...], ...] = ((0,),)) -> AllocationSpec:
    return AllocationSpec(
        allocation_id=ALLOCATION, placements=placements, address=plane.address, token="token-0"
    )


@asynccontextmanager
async def managing(
    path: Path, **options: Any
) -> AsyncIterator[tuple[LocalResourceManager, asyncio.Queue[ContainerReport]]]:
    """A manager whose reports go into a queue."""
    manager = LocalResourceManager(path / "runs", slots=2, **options)
    reports: asyncio.Queue[ContainerReport] = asyncio.Queue()

    async def collect() -> None:
        async for report in manager.watch():
            await reports.put(report)

    collector = asyncio.create_task(collect())
    try:
        yield manager, reports
    finally:
        await manager.close()
        await collector


@asynccontextmanager
async def cleared(path: Path) -> AsyncIterator[None]:
    """Leaves nothing running behind."""
    try:
        yield
    finally:
        manager = LocalResourceManager(path / "runs", slots=2)
        await manager.kill(ALLOCATION)
        await manager.close()


def run_of(path: Path, rank: int = 0) -> RunDirectory:
    return RunDirectory(path / "runs" / ALLOCATION / str(rank))


def identity(path: Path) -> ProcessIdentity:
    found = ProcessIdentity.from_json(read_json(path))
    assert found is not None
    return found


async def seen(plane: ControlPlane, condition: Callable[[], Any]) -> None:
    await asyncio.to_thread(plane.wait_for, condition)


def test_a_run_is_launched_once_watched_and_its_exit_is_known(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo done; exit 3") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                assert await manager.inspect(ALLOCATION) == []
                await manager.launch(spec(plane))
                report = await reports.get()
                assert (report.allocation_id, report.container_rank) == (ALLOCATION, 0)
                assert report.state is ContainerState.EXITED
                assert report.exit is not None
                assert report.exit.exit_code == 3
                await manager.launch(spec(plane))
                again = await reports.get()
                assert again.exit == report.exit
                assert plane.calls.count("GetLaunchSpec") == 1

    scenario(body)


def test_launching_what_runs_changes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, _):
                await asyncio.gather(*(manager.launch(spec(plane)) for _ in range(4)))
                await seen(plane, lambda: "training" in plane.text())
                await manager.launch(spec(plane))
                assert plane.calls.count("GetLaunchSpec") == 1

    scenario(body)


def test_a_run_counts_as_alive_from_the_instant_of_its_launch(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, _):
                await manager.launch(spec(plane))
                (report,) = await manager.inspect(ALLOCATION)
                assert report.state is ContainerState.ALIVE

    scenario(body)


def test_a_later_manager_adopts_what_an_earlier_one_launched(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path):
                async with managing(tmp_path) as (first, _):
                    await first.launch(spec(plane))
                    await seen(plane, lambda: "training" in plane.text())
                child = identity(run_of(tmp_path).child_file)
                async with managing(tmp_path) as (second, reports):
                    (report,) = await second.inspect(ALLOCATION)
                    assert report.state is ContainerState.ALIVE
                    await second.launch(spec(plane))
                    assert identity(run_of(tmp_path).child_file) == child
                    assert child.is_alive()
                    plane.send_signal(kill=True)
                    ended = await reports.get()
                    assert ended.state is ContainerState.EXITED
                assert plane.calls.count("GetLaunchSpec") == 1

    scenario(body)


def test_a_lost_supervisors_orphans_are_ended_before_it_is_reported(tmp_path: Path) -> None:
    async def body() -> None:
        script = "(setsid sleep 100 &); sleep 101 & echo $!; " + TRAIN
        with control_plane(script) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane))
                await seen(plane, lambda: "training" in plane.text())
                run = run_of(tmp_path)
                child, sleeper = identity(run.child_file), ProcessIdentity.of(int(plane.text()[0]))
                assert sleeper is not None
                (scratch,) = (link.readlink() for link in run.external_resources.iterdir())
                (scratch / "data").write_text("left behind")
                os.kill(identity(run.supervisor_file).pid, signal.SIGKILL)
                report = await reports.get()
                assert report.state is ContainerState.LOST
                assert report.exit is None
                assert not child.is_alive()
                assert not sleeper.is_alive()
                assert not scratch.exists()
                # It is not started again under the same name.
                await manager.launch(spec(plane))
                assert (await reports.get()).state is ContainerState.LOST
                assert plane.calls.count("GetLaunchSpec") == 1

    scenario(body)


def test_orphans_of_a_supervisor_that_died_while_nobody_watched_are_ended_too(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path):
                async with managing(tmp_path) as (first, _):
                    await first.launch(spec(plane))
                    await seen(plane, lambda: "training" in plane.text())
                child = identity(run_of(tmp_path).child_file)
                os.kill(identity(run_of(tmp_path).supervisor_file).pid, signal.SIGKILL)
                async with managing(tmp_path) as (second, _):
                    await wait_until_async(lambda: not is_locked(run_of(tmp_path).lock_file))
                    assert child.is_alive()
                    (report,) = await second.inspect(ALLOCATION)
                    assert report.state is ContainerState.LOST
                    assert not child.is_alive()

    scenario(body)


def test_a_stranger_that_got_the_process_id_of_an_orphan_is_spared(tmp_path: Path) -> None:
    async def body() -> None:
        stranger = await asyncio.create_subprocess_exec("sleep", "100", start_new_session=True)
        try:
            run = run_of(tmp_path)
            run.prepare()
            current = ProcessIdentity.of(stranger.pid)
            assert current is not None
            old = current.to_json() | {"start_time": current.start_time - 1}
            for file in (run.supervisor_file, run.child_file):
                file.write_text(json.dumps(old | {"pgid": stranger.pid}))
            async with managing(tmp_path) as (manager, _):
                (report,) = await manager.inspect(ALLOCATION)
                assert report.state is ContainerState.LOST
                await manager.kill(ALLOCATION)
            assert stranger.returncode is None
            assert current.is_alive()
        finally:
            stranger.kill()
            await stranger.wait()

    scenario(body)


def test_a_launch_that_was_cut_off_before_the_supervisor_ran_can_be_repeated(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo done") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                run = run_of(tmp_path)
                run.prepare()
                run.launch_file.write_text("{}")
                (report,) = await manager.inspect(ALLOCATION)
                assert report.state is ContainerState.UNKNOWN
                await manager.launch(spec(plane))
                assert (await reports.get()).state is ContainerState.EXITED

    scenario(body)


def test_a_supervisor_that_cannot_begin_is_a_failure_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "grpc.py").write_text("raise ImportError('a broken installation')")

    async def body() -> None:
        with control_plane("echo done") as plane:
            async with managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane))
                report = await reports.get()
                assert report.state is ContainerState.EXITED
                assert report.exit is not None
                assert report.exit.failed_before_entrypoint
                assert "a broken installation" in report.exit.failure

    scenario(body)


def test_a_kill_ends_supervisor_and_entrypoint_at_once(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("trap '' TERM; " + TRAIN) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane))
                await seen(plane, lambda: "training" in plane.text())
                run = run_of(tmp_path)
                processes = [identity(run.child_file), identity(run.supervisor_file)]
                await manager.kill(ALLOCATION)
                assert not any(process.is_alive() for process in processes)
                assert (await reports.get()).state is ContainerState.LOST
                await manager.kill(ALLOCATION)

    scenario(body)


def test_a_kill_right_after_the_launch_leaves_nothing_running(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with managing(tmp_path) as (manager, _):
                await manager.launch(spec(plane))
                assert not run_of(tmp_path).supervisor_file.exists()
                await manager.kill(ALLOCATION)
                assert not is_locked(run_of(tmp_path).lock_file)
                assert not run_of(tmp_path).child_file.exists()

    scenario(body)


def test_an_allocation_may_have_several_containers_on_this_machine(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo $DET_SLOT_IDS", container_count=2, collective_key="k") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane, placements=((0,), (1,))))
                ended = [await reports.get(), await reports.get()]
                assert sorted(report.container_rank for report in ended) == [0, 1]
                assert {report.state for report in ended} == {ContainerState.EXITED}
                assert sorted(plane.text()) == ["[0]", "[1]"]

    scenario(body)


def test_an_auxiliary_task_needs_no_slot(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo $DET_SLOT_IDS $DET_USE_GPU") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane, placements=((),)))
                await reports.get()
                assert plane.text() == ["[] false"]

    scenario(body)


def test_a_released_run_leaves_nothing_on_disk(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo done") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, _):
                await manager.launch(spec(plane))
                # Released as soon as the exit was reported, while the supervisor is still about to leave.
                await seen(plane, lambda: plane.exits)
                await manager.release(ALLOCATION)
                await wait_until_async(lambda: not list((tmp_path / "runs").iterdir()))
                await manager.release(ALLOCATION)
                assert await manager.inspect(ALLOCATION) == []

    scenario(body)


def test_what_a_lost_run_left_undelivered_is_sent_before_it_is_removed(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path):
                async with managing(tmp_path) as (first, reports):
                    await first.launch(spec(plane))
                    await seen(plane, lambda: "training" in plane.text())
                    await first.kill(ALLOCATION)
                    await reports.get()
                    writer = LineWriter(run_of(tmp_path).spool, name="late")
                    writer.append_lines([Line(1.0, Stdtype.STDOUT, b"written in its last moment")])
                    plane.stop()
                    await first.release(ALLOCATION, token="token-fresh")
                # The first manager went away before anybody answered; the next one takes it up.
                plane.start()
                async with managing(tmp_path):
                    await seen(plane, lambda: "written in its last moment" in plane.text())
                    await wait_until_async(lambda: not list((tmp_path / "runs").iterdir()))

    scenario(body)


async def _lose_with_a_line_unsent(
    tmp_path: Path, plane: ControlPlane, manager: LocalResourceManager, reports: Any
) -> None:
    await manager.launch(spec(plane))
    await seen(plane, lambda: "training" in plane.text())
    await manager.kill(ALLOCATION)
    await reports.get()
    writer = LineWriter(run_of(tmp_path).spool, name="late")
    writer.append_lines([Line(1.0, Stdtype.STDOUT, b"written in its last moment")])
    writer.close()


def test_lines_of_a_lost_run_are_delivered_before_its_end_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await _lose_with_a_line_unsent(tmp_path, plane, manager, reports)
                assert await manager.deliver_lines({ALLOCATION: "token-fresh"})
                assert "written in its last moment" in plane.text()
                # There is nothing left to wait for.
                assert await manager.deliver_lines({ALLOCATION: "token-fresh", "unknown": ""})

    scenario(body)


def test_lines_that_cannot_be_delivered_in_time_are_named_in_the_log_and_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resolute_experiments.resources.local.manager._START_SECONDS", 3.0)

    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path), managing(tmp_path, log_wait=0.2) as (manager, reports):
                await _lose_with_a_line_unsent(tmp_path, plane, manager, reports)
                plane.takes_lines = False
                assert not await manager.deliver_lines({ALLOCATION: "token-fresh"})
                plane.takes_lines = True
                await seen(plane, lambda: "written in its last moment" in plane.text())
                await seen(plane, lambda: any("had not all arrived" in text for text in plane.text()))

    scenario(body)


def test_what_a_lost_supervisor_had_not_read_arrives_once_and_the_log_says_that_it_was_lost(
    tmp_path: Path,
) -> None:
    lines = [f"line {number}" for number in range(1, 101)]
    script = (
        "echo training; while ! test -e $RESOLUTE_RUN_DIR/go; do sleep 0.02; done; "
        "for i in $(seq 100); do echo line $i; done; echo problem >&2; "
        "echo $DET_SESSION_TOKEN $RESOLUTE_COLLECTIVE_KEY; "
        "touch $RESOLUTE_RUN_DIR/written; sleep 600"
    )

    async def body() -> None:
        with control_plane(script) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane))
                await seen(plane, lambda: "training" in plane.text())
                run = run_of(tmp_path)
                supervisor = identity(run.supervisor_file)
                supervisor.send(signal.SIGSTOP)
                (run.path / "go").touch()
                await wait_until_async((run.path / "written").exists)
                supervisor.send(signal.SIGKILL)
                assert (await reports.get()).state is ContainerState.LOST
                assert await manager.deliver_lines({ALLOCATION: ""})
                # It is told once, whoever looks again.
                await manager.inspect(ALLOCATION)
                assert await manager.deliver_lines({ALLOCATION: ""})
                assert [text for text in plane.text(stdtype="stdout") if text != "training"] == [
                    *lines,
                    "*** ***",
                ]
                assert plane.text(stdtype="stderr") == ["problem"]
                assert [text for text in plane.text() if text == MARKER] == [MARKER]

    scenario(body)


def senders(tmp_path: Path) -> list[ProcessIdentity]:
    return [one.identity for one in processes_of(tmp_path) if one.role is Role.SALVAGE]


def test_what_is_left_is_sent_even_when_its_sender_is_killed(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo done") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane))
                await reports.get()
                writer = LineWriter(run_of(tmp_path).spool, name="late")
                writer.append_lines([Line(1.0, Stdtype.STDOUT, b"written in its last moment")])
                plane.stop()
                await manager.release(ALLOCATION)
                await wait_until_async(lambda: senders(tmp_path))
                senders(tmp_path)[0].send(signal.SIGKILL)
                plane.start()
                await seen(plane, lambda: "written in its last moment" in plane.text())
                await wait_until_async(lambda: not list((tmp_path / "runs").iterdir()))

    scenario(body)


def test_a_removal_that_was_cut_short_is_finished_by_the_next_manager(tmp_path: Path) -> None:
    async def body() -> None:
        half = run_of(tmp_path).path.with_name("0.removed")
        half.mkdir(parents=True)
        (half / "spool").touch()
        (half.parent / "released").touch()
        async with managing(tmp_path):
            await wait_until_async(lambda: not list((tmp_path / "runs").iterdir()))

    scenario(body)


def test_what_was_not_released_can_be_found(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo done") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                assert await manager.leftovers() == []
                await manager.launch(spec(plane))
                await reports.get()
                assert await manager.leftovers() == [ALLOCATION]
                await manager.release(ALLOCATION)
                assert await manager.leftovers() == []

    scenario(body)


def test_closing_the_manager_ends_no_run(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path):
                async with managing(tmp_path) as (manager, _):
                    await manager.launch(spec(plane))
                    await seen(plane, lambda: "training" in plane.text())
                assert identity(run_of(tmp_path).child_file).is_alive()

    scenario(body)


def environment_of(process: ProcessIdentity) -> dict[str, str]:
    entries = Path(f"/proc/{process.pid}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def test_neither_supervisors_nor_trials_inherit_secrets_of_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "RESOLUTE_DATABASE_URL": "postgresql://resolute:s3cr3t@db/resolute",
        "RESOLUTE_CHECKPOINTS_S3_SECRET_KEY": "s3cr3t",
        "RESOLUTE_SIGNING_KEY_FILE": "/etc/s3cr3t.pem",
        "AWS_SECRET_ACCESS_KEY": "s3cr3t",
        "AZURE_STORAGE_CONNECTION_STRING": "AccountKey=s3cr3t",
        "PGPASSWORD": "s3cr3t",
        "HF_TOKEN": "s3cr3t",
    }
    passed = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "MY_DATA": "/data", "WANDB_API_KEY": "given"}
    for name, value in {**secrets, **passed, "RESOLUTE_TRIAL_VARIABLES": "MY_*, WANDB_API_KEY"}.items():
        monkeypatch.setenv(name, value)

    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, _):
                await manager.launch(spec(plane))
                await seen(plane, lambda: "training" in plane.text())
                run = run_of(tmp_path)
                for process in (identity(run.supervisor_file), identity(run.child_file)):
                    found = environment_of(process)
                    assert "s3cr3t" not in repr(found)
                    assert secrets.keys().isdisjoint(found)
                    assert passed.items() <= found.items()
                    assert {"PATH", "HOME"} <= found.keys()

    scenario(body)
