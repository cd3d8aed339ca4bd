"""The first process of a namespace of processes, as a container has one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from support.backends import missing

OF_ITS_OWN = [
    "unshare",
    "--map-root-user",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    sys.executable,
    "-c",
]

BEGIN = """
import os, signal, subprocess, sys
from resolute_launch.processes.first_process import leave_first_process
leave_first_process()
"""

ORPHANS = """
for _ in range(50):
    subprocess.run(["sh", "-c", "sleep 0 & exit"], check=True)

def states():
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield open(f"/proc/{each}/stat").read().rpartition(")")[2].split()[0]
        except OSError:
            pass
"""


@contextmanager
def first_process(script: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a script as the first process of a namespace."""
    command = [*OF_ITS_OWN, BEGIN + script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    tried = subprocess.run([*OF_ITS_OWN, "pass"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        missing(f"no namespace of processes can be made here: {tried.stderr.strip()}")


def test_what_orphans_leave_is_taken_away() -> None:
    # The two that stay: the first process, and this one.
    look = "while len(list(states())) > 2: pass\nprint(os.getpid() != 1)"
    with first_process(ORPHANS + look) as process:
        said, _ = process.communicate(timeout=30)
    assert said == "True\n"


def test_one_that_keeps_a_process_waits_for_orphans_beside_it() -> None:
    script = """
import os, subprocess
from resolute_launch.processes.first_process import reap_orphans
child = subprocess.Popen(["sleep", "600"])
"""
    look = """
while len(list(states())) > 2:
    reap_orphans(but=child.pid)
child.kill()
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
reap_orphans(but=child.pid)
print(os.getpid(), child.wait())
"""
    command = [*OF_ITS_OWN, script + ORPHANS + look]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("1 -9\n", "")


def test_an_exit_code_is_that_of_the_process_that_goes_on() -> None:
    with first_process("sys.exit(7)") as process:
        assert process.wait(60) == 7
    with first_process("os.kill(os.getpid(), signal.SIGKILL)") as process:
        assert process.wait(60) == 128 + 9


def test_a_signal_reaches_the_process_that_goes_on() -> None:
    waits = (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\nprint('ready', flush=True)\nsignal.pause()"
    )
    with first_process(waits) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (first,) = psutil.Process(process.pid).children()
        first.terminate()
        assert process.wait(60) == 5


def test_another_process_stays_itself() -> None:
    command = [sys.executable, "-c", BEGIN + "print(os.getpid(), os.getppid())"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said, _ = process.communicate(timeout=60)
    assert said.split() == [str(process.pid), str(os.getpid())]
