"""The two processes of a Pod, on this machine: the shim of a supervisor, and who sends what it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clusters.control_plane import ControlPlane, control_plane
from support.waiting import wait_until

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.termination_message import BEGAN, parse_message

pytestmark = pytest.mark.integration
SECONDS = 60.0
TRAIN = "echo training; while true; do sleep 0.05; done"


class PodProcesses:
    """A Pod's volume, what is shown to it, and its processes."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self.volume, self._order = folder / "volume", folder / "order"
        self.asked, self.termination_message = folder / "asked", folder / "last-word"
        self.volume.mkdir()
        self.asked.touch()
        order = LaunchOrder(
            allocation_id="allocation-1", master=plane.address, token="token-0", log_wait_seconds=1.0
        )
        order.write(self._order)

    @property
    def run(self) -> RunDirectory:
        """The run directory."""
        return RunDirectory(self.volume / "run")

    @contextmanager
    def process(self, part: str) -> Iterator[subprocess.Popen[bytes]]:
        """One of the two, as Kubernetes starts it."""
        files = ("--order", self._order, "--asked", self.asked, "--last-word", self.termination_message)
        command = [sys.executable, "-m", "resolute_launch.pod", part, str(self.volume)]
        process = subprocess.Popen(
            [*command, *(map(str, files) if part == "keep" else ())],
            env={**os.environ, "RESOLUTE_NODE": "node-7", "RESOLUTE_POD_ADDRESS": "127.0.0.1"},
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait(SECONDS)


@contextmanager
def pod(folder: Path, script: str) -> Iterator[tuple[ControlPlane, PodProcesses]]:
    """A Pod whose supervisor reaches a control plane."""
    with control_plane(script, preemption_timeout=0.2) as plane:
        yield plane, PodProcesses(folder, plane)


def test_the_end_is_the_termination_message_and_nothing_is_left_to_send(tmp_path: Path) -> None:
    with pod(tmp_path, "echo done; exit 3") as (plane, made), made.process("send") as sender:
        with made.process("keep") as shim:
            shim.wait(SECONDS)
        parsed = parse_message(made.termination_message.read_text())
        assert parsed.exit is not None
        assert parsed.exit.exit_code == 3
        assert sender.wait(SECONDS) == 0
        assert plane.text() == ["done"]
        assert LaunchOrder.read(made.run.launch_file).agent_id == "node-7"


@pytest.mark.parametrize("way", ["asked", "SIGTERM"])
def test_who_is_asked_to_stop_has_the_platform_ask_the_run(tmp_path: Path, way: str) -> None:
    with pod(tmp_path, TRAIN) as (plane, made), made.process("keep") as shim:
        plane.wait_for(lambda: "training" in plane.text(), seconds=SECONDS)
        assert made.termination_message.read_text() == BEGAN
        if way == "asked":
            made.asked.write_text("stop")
        else:
            shim.send_signal(signal.SIGTERM)
        shim.wait(SECONDS)
        assert plane.preemptions
        assert parse_message(made.termination_message.read_text()).exit is not None


def test_a_kill_leaves_no_process_and_no_word_and_the_rest_is_sent(tmp_path: Path) -> None:
    with pod(tmp_path, TRAIN) as (plane, made), made.process("send") as sender:
        with made.process("keep") as shim:
            plane.wait_for(lambda: "training" in plane.text(), seconds=SECONDS)
            child = ProcessIdentity.from_json(read_json(made.run.child_file))
            assert child is not None
            made.asked.write_text("kill")
            shim.wait(SECONDS)
        assert made.termination_message.read_text() == BEGAN
        wait_until(lambda: ProcessIdentity.of(child.pid) != child, what="the end of the trial")
        assert sender.wait(SECONDS) == 0
        assert any("supervisor" in text for text in plane.text()), "the log tells of the loss"


def test_a_sender_whose_trial_never_began_goes_with_its_pod(tmp_path: Path) -> None:
    with pod(tmp_path, TRAIN) as (_, made), made.process("send") as sender:
        wait_until(lambda: b"SigCgt" in _status(sender) and _catches_term(sender), what="the sender to wait")
        sender.send_signal(signal.SIGTERM)
        assert sender.wait(SECONDS) == 0


def _status(process: subprocess.Popen[bytes]) -> bytes:
    return Path(f"/proc/{process.pid}/status").read_bytes()


def _catches_term(process: subprocess.Popen[bytes]) -> bool:
    (line,) = [line for line in _status(process).splitlines() if line.startswith(b"SigCgt")]
    return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
