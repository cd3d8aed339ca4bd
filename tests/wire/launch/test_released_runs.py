"""What a run leaves behind is delivered before it is removed, even when processes die in between."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from faults.harness.cluster_processes import Role, processes_of
from support.clusters.control_plane import ControlPlane, control_plane
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
from resolute.contracts.spool.format import Line, Stdtype
from resolute.spool.line_writer import LineWriter
from resolute_engines.environment import SupervisorTerms
from resolute_engines.local.engine import LocalEngine
from resolute_launch.container.lost_output import MARKER


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
    tmp_path: Path, plane: ControlPlane, manager: LocalEngine, reports: Any
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
                assert await manager.backlog.deliver_lines({ALLOCATION: "token-fresh"})
                assert "written in its last moment" in plane.text()
                # There is nothing left to wait for.
                assert await manager.backlog.deliver_lines({ALLOCATION: "token-fresh", "unknown": ""})

    scenario(body)


def test_lines_that_cannot_be_delivered_in_time_are_named_in_the_log_and_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resolute_engines.kit.run_directories.deliveries._START_SECONDS", 3.0)

    async def body() -> None:
        with control_plane(TRAIN) as plane:
            async with (
                cleared(tmp_path),
                managing(tmp_path, terms=SupervisorTerms(log_wait=0.2)) as (manager, reports),
            ):
                await _lose_with_a_line_unsent(tmp_path, plane, manager, reports)
                plane.takes_lines = False
                assert not await manager.backlog.deliver_lines({ALLOCATION: "token-fresh"})
                # The process that sends them may still be starting on a busy machine.
                log = run_of(tmp_path).log_file
                await wait_until_async(lambda: "had not all arrived" in log.read_text())
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
                assert (await reports.get()).lost
                assert await manager.backlog.deliver_lines({ALLOCATION: ""})
                # It is told once, whoever looks again.
                await manager.inspect(ALLOCATION)
                assert await manager.backlog.deliver_lines({ALLOCATION: ""})
                assert [text for text in plane.text(stdtype="stdout") if text != "training"] == [
                    *lines,
                    "*** ***",
                ]
                assert plane.text(stdtype="stderr") == ["problem"]
                assert [text for text in plane.text() if text == MARKER] == [MARKER]

    scenario(body)


def senders(tmp_path: Path) -> list[ProcessIdentity]:
    return [one.identity for one in processes_of(tmp_path) if one.role is Role.ORPHAN_UPLOAD]


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
