"""The local resource manager with real supervisors: they outlive it, and none is lost or started twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from support.clusters.control_plane import control_plane
from support.clusters.local_runs import (
    ALLOCATION,
    TRAIN,
    cleared,
    identity,
    managing,
    run_of,
    scenario,
    seen,
    spec,
)
from support.waiting import wait_until_async

from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.lock import is_locked
from resolute_engines.protocol import ContainerState


def test_a_run_is_launched_once_watched_and_its_exit_is_known(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo done; exit 3") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                assert await manager.inspect(ALLOCATION) == []
                await manager.launch(spec(plane))
                report = await reports.get()
                assert (report.allocation_id, report.container_rank) == (ALLOCATION, 0)
                assert report.state is ContainerState.ENDED
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
                assert report.state is ContainerState.RUNNING

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
                    assert report.state is ContainerState.RUNNING
                    await second.launch(spec(plane))
                    assert identity(run_of(tmp_path).child_file) == child
                    assert child.is_alive()
                    plane.send_signal(kill=True)
                    ended = await reports.get()
                    assert ended.state is ContainerState.ENDED
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
                assert report.lost
                assert report.exit is None
                assert not child.is_alive()
                assert not sleeper.is_alive()
                assert not scratch.exists()
                # It is not started again under the same name.
                await manager.launch(spec(plane))
                assert (await reports.get()).lost
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
                    assert report.lost
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
                assert report.lost
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
                assert (await reports.get()).state is ContainerState.ENDED

    scenario(body)


def test_a_supervisor_that_cannot_begin_is_a_failure_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "grpc.py").write_text("raise ImportError('a broken installation')")

    async def body() -> None:
        with control_plane("echo done") as plane:
            async with managing(tmp_path) as (manager, _):
                with pytest.raises(OSError, match="a broken installation"):
                    await manager.launch(spec(plane))

    scenario(body)


def forker(run: RunDirectory) -> ProcessIdentity:
    """The parent of the supervisor of a run."""
    stat = Path(f"/proc/{identity(run.supervisor_file).pid}/stat").read_text()
    found = ProcessIdentity.of(int(stat.rpartition(")")[2].split()[1]))
    assert found is not None
    return found


def children(process: ProcessIdentity) -> str:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()


def test_supervisors_outlive_the_process_that_forks_them_which_is_started_again(tmp_path: Path) -> None:
    async def body() -> None:
        run, other = run_of(tmp_path), RunDirectory(tmp_path / "runs" / "other" / "0")
        with control_plane(TRAIN) as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, _):
                await manager.launch(spec(plane))
                await seen(plane, lambda: "training" in plane.text())
                first, supervisor = forker(run), identity(run.supervisor_file)
                command = Path(f"/proc/{supervisor.pid}/cmdline").read_bytes().split(b"\0")
                assert command[1:4] == [b"-m", b"resolute_launch.supervisor", os.fsencode(run.path)]
                first.send(signal.SIGKILL)
                await wait_until_async(lambda: not first.is_alive())
                assert supervisor.is_alive()
                await manager.launch(replace(spec(plane), allocation_id="other"))
                await wait_until_async(other.supervisor_file.exists)
                second = forker(other)
                assert second != first
                await manager.kill("other")
                # It has waited for its fork: not even the process id is left.
                await wait_until_async(lambda: not children(second))
                assert supervisor.is_alive()
            await wait_until_async(lambda: not second.is_alive())

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
                assert (await reports.get()).lost
                await manager.kill(ALLOCATION)

    scenario(body)


def test_a_kill_right_after_the_launch_leaves_nothing_running(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with managing(tmp_path) as (manager, _):
                await manager.launch(spec(plane))
                run = run_of(tmp_path)
                # As it is for a moment after the fork: the supervisor has not said yet who it is.
                run.supervisor_file.unlink(missing_ok=True)
                await manager.kill(ALLOCATION)
                assert not is_locked(run.lock_file)
                assert not (run.child_file.exists() and identity(run.child_file).is_alive())

    scenario(body)


def test_an_allocation_may_have_several_containers_on_this_machine(tmp_path: Path) -> None:
    async def body() -> None:
        with control_plane("echo $DET_SLOT_IDS", container_count=2, collective_key="k") as plane:
            async with cleared(tmp_path), managing(tmp_path) as (manager, reports):
                await manager.launch(spec(plane, placements=((0,), (1,))))
                ended = [await reports.get(), await reports.get()]
                assert sorted(report.container_rank for report in ended) == [0, 1]
                assert {report.state for report in ended} == {ContainerState.ENDED}
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
