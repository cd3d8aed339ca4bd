"""A siege that is ended early takes what it started with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from support.waiting import wait_until

_SIEGE = Path(__file__).resolve().parents[2] / "benchmarks" / "scale" / "siege.py"
_SECONDS = 300.0


@pytest.mark.timeout(900)
def test_a_siege_that_is_ended_leaves_no_process() -> None:
    with tempfile.TemporaryDirectory() as folder:  # a short path, since sockets lie below it
        environment = {**os.environ, "TMPDIR": folder}
        siege = subprocess.Popen([sys.executable, str(_SIEGE), "--seconds", "600"], env=environment)
        try:
            attacked = "its besiegers"
            wait_until(lambda: "_besiegers.py" in _started(folder), what=attacked, seconds=_SECONDS)
            siege.terminate()
            assert siege.wait(_SECONDS) == 128 + 15
            # `resolute down` waits for the lock of the home, which a process drops before it has ended.
            wait_until(lambda: not _started(folder), what="the end of every process", seconds=_SECONDS)
        finally:
            for process in _processes(folder):
                process.kill()
            siege.wait(_SECONDS)


def _started(folder: str) -> str:
    """The command lines of what a siege started."""
    lines = []
    for process in _processes(folder):
        try:
            lines.append(" ".join(process.cmdline()))
        except psutil.NoSuchProcess:
            continue
    return "\n".join(lines)


def _processes(folder: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == folder and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
