"""Ranks without a cluster: processes under torchrun or horovodrun, and how they meet in a script."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import torch.distributed as dist
from support.backends import missing
from support.ports import free_port

from resolute.core import DistributedContext, DummyDistributedContext

TESTS = Path(__file__).resolve().parents[3]
VARIABLES = {"torch": "USE_TORCH_DISTRIBUTED", "horovod": "USE_HOROVOD"}
"""What says how gradients are exchanged, by backend."""


@contextmanager
def joined(backend: str) -> Iterator[DistributedContext]:
    """Meets the other ranks, as the guide shows; with the backend ``alone`` there are none."""
    if backend == "alone":
        yield DummyDistributedContext()
        return
    os.environ[VARIABLES[backend]] = "true"
    if backend == "torch":
        dist.init_process_group(backend="gloo")
        with DistributedContext.from_torch_distributed() as distributed:
            yield distributed
        dist.destroy_process_group()
        return
    import horovod.torch as hvd

    hvd.init()
    with DistributedContext.from_horovod(hvd) as distributed:
        yield distributed
    hvd.shutdown()


def command_of(backend: str, script: Path, *arguments: str) -> list[str]:
    """The command line of a script that one rank runs alone, or two under a launcher.

    Skips the test where the launcher is not installed.
    """
    program = [str(script), *arguments]
    if backend == "alone":
        return [sys.executable, *program]
    tool = Path(sys.executable).with_name("torchrun" if backend == "torch" else "horovodrun")
    if not tool.exists():
        missing(f"{tool.name} is not installed: `make distributed` installs it")
    if backend == "torch":
        port = f"--master_port={free_port()}"
        return [str(tool), "--nproc_per_node=2", "--master_addr=127.0.0.1", port, *program]
    return [str(tool), "-np", "2", "--gloo", "-H", "localhost:2", sys.executable, *program]


def start(backend: str, script: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts a script on one rank or two; its output is text, and a process that aborts says where it was."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONPATH": str(TESTS),
        "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
    }
    return subprocess.Popen(
        command_of(backend, script, *arguments),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(backend: str, script: Path, *arguments: str, timeout: float = 100) -> str:
    """Runs a script to its end; returns what it said, and fails with that if the script failed or hung."""
    with start(backend, script, *arguments) as process:
        try:
            said, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end_all(process, signal.SIGABRT)
            said, _ = process.communicate(timeout=timeout)
            pytest.fail(f"{script.name} had not ended after {timeout} s; where its processes were:\n{said}")
    assert process.returncode == 0, said
    return said


def end_all(process: subprocess.Popen[str], signum: int = signal.SIGKILL) -> None:
    """Sends a signal to a launcher and to everything that it started."""
    launcher = psutil.Process(process.pid)
    for each in (launcher, *launcher.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(signum)
