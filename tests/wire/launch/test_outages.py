"""Runs whose control plane is away for a while, or for too long."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import grpc
from support.clusters.control_plane import ControlPlane, control_plane, make_spec
from support.clusters.supervisors import supervised
from support.waiting import wait_until

from resolute.api.preemption.v1.signal_pb2 import SIGNAL_REASON_TIMEOUT
from resolute.contracts.run.directory import RunDirectory
from resolute.spool.report_writer import ReportWriter

COUNT = "for i in $(seq 200); do echo line $i; sleep 0.01; done"


def upload_orphans(run: RunDirectory, *arguments: str) -> int:
    command = [sys.executable, "-m", "resolute_launch.supervisor.orphan_upload", str(run.path), *arguments]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_what_is_written_during_an_outage_arrives_once_after_it(tmp_path: Path) -> None:
    with control_plane(COUNT, lease_ttl=0.5) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: len(plane.text()) > 20)
        plane.stop()
        seen = len(plane.text())
        time.sleep(0.5)
        plane.start()
        assert run.wait() == 0
        assert plane.text() == [f"line {i}" for i in range(1, 201)]
        assert seen < 200
        assert plane.exits[0].exit_code == 0


def test_a_run_whose_control_plane_comes_late_still_starts(tmp_path: Path) -> None:
    plane = ControlPlane(make_spec("echo done"))  # type: ignore[abstract]  # what is not called is not there
    with supervised(tmp_path, plane) as run:
        wait_until(lambda: "will be tried again" in run.log())
        plane.start()
        try:
            assert run.wait() == 0
            assert plane.text() == ["done"]
        finally:
            plane.stop()


def test_an_exit_during_an_outage_is_on_disk_at_once_and_reported_after_it(tmp_path: Path) -> None:
    script = "echo started; while ! test -e $RESOLUTE_RUN_DIR/go; do sleep 0.02; done; echo last; exit 4"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: "started" in plane.text())
        plane.stop()
        (run.run.path / "go").touch()
        wait_until(run.run.exit_file.exists)
        assert run.record().exit_code == 4
        assert plane.exits == []
        # What it left elsewhere may take long to remove, and is: after its lines have arrived.
        time.sleep(0.5)
        (scratch,) = (link.readlink() for link in run.run.external_resources.iterdir())
        assert scratch.is_dir()
        plane.start()
        assert run.wait() == 0
        assert plane.text() == ["started", "last"]
        assert plane.exits[0].exit_code == 4
        assert not scratch.exists()


def test_a_run_that_nobody_misses_checkpoints_and_leaves_its_history_on_disk(tmp_path: Path) -> None:
    script = """
import os, time
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.flags import Flags
run = RunDirectory.from_environment()
flags = Flags(run.flags_file)
print("training", flush=True)
while not flags.preempt:
    time.sleep(0.01)
print("saved because", flags.reason, flush=True)
flags.acknowledge()
"""
    with (
        control_plane(["python3", "t.py"], files={"t.py": script}, lease_ttl=0.5) as plane,
        supervised(tmp_path, plane, lease_patience_seconds=1.0) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.stop()
        assert run.wait() == 0
        record = run.record()
        assert (record.exit_code, record.acknowledged) == (0, True)
        assert plane.exits == []
        assert plane.text() == ["training"]
        assert upload_orphans(run.run, "--outage-timeout", "0.2") == 1
        plane.start()
        assert upload_orphans(run.run) == 0
        assert f"saved because {SIGNAL_REASON_TIMEOUT}" in plane.text()


def test_a_token_that_expired_meanwhile_is_not_the_end(tmp_path: Path) -> None:
    with control_plane(COUNT, lease_ttl=0.3) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: "line 1" in plane.text())
        plane.refusal = (grpc.StatusCode.UNAUTHENTICATED, "the token has expired")
        wait_until(lambda: "the token has expired" in run.log())
        plane.refusal = None
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 0


def test_reports_that_a_killed_trainer_left_are_sent_to_the_end(tmp_path: Path) -> None:
    script = """
import os, signal
from resolute.contracts.run.directory import RunDirectory
from resolute.spool.report_writer import ReportWriter
writer = ReportWriter(RunDirectory.from_environment().spool)
for step in range(1000):
    writer.report("training", step, {"loss": 1.0 / (step + 1)})
os.kill(os.getpid(), signal.SIGKILL)
"""
    with (
        control_plane(["python3", "t.py"], files={"t.py": script}) as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        assert list(plane.reports.values()) == [1000]
        assert plane.exits[0].exit_code == 137


def test_nothing_is_uploaded_from_a_run_that_lives(tmp_path: Path) -> None:
    with control_plane("sleep 100") as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: any(plane.pids))
        assert upload_orphans(run.run) == 75


def test_a_run_that_never_learned_what_it_was_has_nothing_to_upload(tmp_path: Path) -> None:
    with control_plane("true") as plane, supervised(tmp_path, plane, allocation_id="other") as run:
        run.process.kill()
        run.wait()
        (run.run.path / "launch_spec.pb").unlink(missing_ok=True)
        run.run.prepare()
        assert upload_orphans(run.run) == 0


def test_the_orphan_upload_sends_reports_too(tmp_path: Path) -> None:
    with control_plane("true") as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        writer = ReportWriter(run.run.spool)
        writer.report("validation", 1, {"loss": 0.5})
        assert upload_orphans(run.run) == 0
        assert list(plane.reports.values()) == [1]


LATE = "lines of this run had not all arrived"


def test_the_exit_is_reported_when_the_lines_have_arrived(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    with control_plane("echo last words") as plane, supervised(tmp_path, plane) as run:
        plane.takes_lines = False
        plane.on_exit = lambda: seen.append(plane.text())
        wait_until(lambda: run.run.exit_file.exists() and "cannot send logs" in run.log())
        assert plane.exits == []
        plane.takes_lines = True
        assert run.wait() == 0
        assert seen == [["last words"]]


def test_lines_that_stay_away_delay_the_exit_for_a_bounded_time_and_the_log_says_so(tmp_path: Path) -> None:
    with (
        control_plane("echo last words") as plane,
        supervised(tmp_path, plane, log_wait_seconds=0.2) as run,
    ):
        plane.takes_lines = False
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 0
        assert plane.text() == []
        plane.takes_lines = True
        assert upload_orphans(run.run) == 0
        first, *others = sorted(plane.text())
        assert LATE in first
        assert others == ["last words"]


def test_after_an_outage_the_lines_come_before_the_exit_however_short_the_wait(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    script = "echo started; while ! test -e $RESOLUTE_RUN_DIR/go; do sleep 0.02; done; echo last"
    with control_plane(script) as plane, supervised(tmp_path, plane, log_wait_seconds=4.0) as run:
        plane.wait_for(lambda: "started" in plane.text())
        plane.on_exit = lambda: seen.append([text for text in plane.text() if LATE not in text])
        plane.stop()
        (run.run.path / "go").touch()
        # The wait is over and the report of the exit is tried again before the control plane comes back.
        wait_until(lambda: "reporting the exit will be tried again" in run.log())
        plane.start()
        assert run.wait() == 0
        assert seen == [["started", "last"]]
