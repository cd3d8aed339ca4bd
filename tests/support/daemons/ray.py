"""A real Ray of two nodes on this machine: processes of the test's own, in one directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from support.backends import missing
from support.ports import free_port
from support.waiting import wait_until

PYTHON = Path(sys.prefix) / "ray/bin/python"
"""An interpreter with Ray and little else: each of Ray's processes would import much of what is there."""
CPUS = 2
"""Processors of each of the two nodes, whatever this machine has."""
_UTS = ("unshare", "--map-root-user", "--uts", "sh", "-ec", 'hostname "$0"; exec "$@"')
_SECONDS = 300.0
_STORE_BYTES = 80_000_000


class RayCluster:
    """A running Ray.

    Args:
        directory: Holds all of it.
        host_names: Whether each node has a host name of its own, which is its name, as machines have; where
            the kernel does not allow that, its test is skipped.
    """

    def __init__(self, directory: Path, *, host_names: bool = False) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        """Of its head."""
        self.directory = directory
        self._host_names = host_names
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start_head(self) -> None:
        """Starts the head, which is a node too."""
        self._start(
            *("head", "--head", "--include-dashboard=false", "--node-ip-address=127.0.0.1"),
            *(f"--port={self.address.partition(':')[2]}", "--no-monitor"),
        )

    def start_worker(self, name: str = "worker") -> None:
        """Starts another node; such nodes alone have the resource ``worker``."""
        self._start(name, f"--address={self.address}", '--resources={"worker": 8}')

    def kill(self, name: str) -> None:
        """Ends a node at once, the ``head`` or another, with all that Ray runs on it."""
        process = self._nodes.pop(name)
        _kill(_session_of(process))
        process.wait(_SECONDS)

    def kill_machine(self, name: str) -> None:
        """Ends a node with everything that runs on it, as a loss of power does; its files stay."""
        process = self._nodes.pop(name)
        _kill([*_session_of(process), *_started_in(self.directory_of(name))])
        process.wait(_SECONDS)

    def directory_of(self, name: str) -> Path:
        """A node's directory of temporary files."""
        return self.directory / name

    def kill_raylet(self, name: str) -> None:
        """Ends a node by its raylet alone; returns once the rest of the node has ended for that."""
        process = self._nodes[name]
        for each in _session_of(process):
            with suppress(psutil.Error):
                if each.name() == "raylet":
                    each.kill()
        process.wait(_SECONDS)
        self.kill(name)

    def stop(self) -> None:
        """Ends everything that was started."""
        for name in list(self._nodes):
            self.kill(name)

    def _start(self, name: str, *options: str) -> None:
        # Ray gives a node half a minute to start, however busy the machine is, and cannot be told otherwise.
        while not self._started(name, *options):
            self.kill(name)

    def _started(self, name: str, *options: str) -> bool:
        output = self.directory / f"{name}.out"
        self.directory_of(name).mkdir(exist_ok=True)
        # Ray waits for each of its agents for a quarter of a minute to learn a port that it was not told.
        agents = ("dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")
        with output.open("wb") as file:
            process = subprocess.Popen(
                [
                    *((*_UTS, name) if self._host_names else ()),
                    *(str(PYTHON.with_name("ray")), "start", "--block", *options),
                    *(f"--num-cpus={CPUS}", f"--object-store-memory={_STORE_BYTES}", "--num-gpus=0"),
                    *(f"--{agent}-port={free_port()}" for agent in agents),
                    # Any ports: its own range has some that the head could be given.
                    *("--min-worker-port=0", "--max-worker-port=0"),
                    *("--include-log-monitor=false", "--disable-usage-stats"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={
                    **os.environ,
                    "RAY_TMPDIR": str(self.directory),
                    "TMPDIR": str(self.directory_of(name)),
                    "RAY_agent_register_timeout_ms": str(int(_SECONDS * 1000)),
                    # Ray's workers give way to all others, which on a busy machine leaves runs no processor.
                    "RAY_worker_niceness": "0",
                },
                start_new_session=True,
            )
        self._nodes[name] = process

        def said() -> str:
            return output.read_text(errors="replace")

        def settled() -> bool:
            return "--block" in said() or process.poll() is not None

        wait_until(settled, what=f"Ray's {name}", seconds=_SECONDS, pause=0.2)
        if process.poll() is None:
            return True
        assert "timed out during startup" in said(), f"{name} ended: {said()[-2000:]}"
        return False


def _session_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """What a node runs: its workers have process groups of their own, in its session."""
    found = []
    for each in psutil.process_iter():
        with suppress(ProcessLookupError):
            if os.getsid(each.pid) == process.pid:
                found.append(each)
    return found


def _started_in(directory: Path) -> list[psutil.Process]:
    """Every process that was told to have its temporary files there."""
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.environ().get("TMPDIR") == str(directory):
                found.append(each)
    return found


def _kill(processes: list[psutil.Process]) -> None:
    # None of them is to see the end of another one.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for each in processes:
            with suppress(psutil.Error):
                each.send_signal(number)


@contextmanager
def running_ray(*, host_names: bool = False) -> Iterator[RayCluster]:
    """A Ray of its own, as ``RayCluster`` has it; skips where it is not installed."""
    if not PYTHON.exists():
        missing(f"Ray is missing: no {PYTHON}; `make engines` installs it")
    if host_names and subprocess.run([*_UTS, "head", "true"], check=False).returncode != 0:
        missing("this machine allows no host names of nodes (run as root)")
    # Not pytest's own directory: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as directory:
        cluster = RayCluster(Path(directory), host_names=host_names)
        try:
            cluster.start_head()
            cluster.start_worker()
            yield cluster
        finally:
            cluster.stop()
