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
_SECONDS = 300.0
_STORE_BYTES = 80_000_000


class RayCluster:
    """A running Ray.

    Args:
        directory: Holds all of it.
    """

    def __init__(self, directory: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        """Of its head."""
        self.directory = directory
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start_head(self) -> None:
        """Starts the head, which is a node too."""
        self._start(
            *("head", "--head", "--include-dashboard=false", "--node-ip-address=127.0.0.1"),
            *(f"--port={self.address.partition(':')[2]}", "--no-monitor"),
        )

    def start_worker(self) -> None:
        """Starts the other node, which alone has the resource ``worker``."""
        self._start("worker", f"--address={self.address}", '--resources={"worker": 8}')

    def kill(self, name: str) -> None:
        """Ends a node at once, ``head`` or ``worker``, with all that Ray runs on it."""
        process = self._nodes.pop(name)
        # Its workers have process groups of their own, in the node's session.
        for each in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError):
                if os.getsid(each.pid) == process.pid:
                    os.kill(each.pid, signal.SIGKILL)
        process.wait(_SECONDS)

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
        # Ray waits for each of its agents for a quarter of a minute to learn a port that it was not told.
        agents = ("dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")
        with output.open("wb") as file:
            process = subprocess.Popen(
                [
                    *(str(PYTHON.with_name("ray")), "start", "--block", *options),
                    *(f"--num-cpus={CPUS}", f"--object-store-memory={_STORE_BYTES}", "--num-gpus=0"),
                    *(f"--{agent}-port={free_port()}" for agent in agents),
                    *("--include-log-monitor=false", "--disable-usage-stats"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={
                    **os.environ,
                    "RAY_TMPDIR": str(self.directory),
                    "TMPDIR": str(self.directory),
                    "RAY_agent_register_timeout_ms": str(int(_SECONDS * 1000)),
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


@contextmanager
def running_ray() -> Iterator[RayCluster]:
    """A Ray of its own; skips where it is not installed."""
    if not PYTHON.exists():
        missing(f"Ray is missing: no {PYTHON}; `make engines` installs it")
    # Not pytest's own directory: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as directory:
        cluster = RayCluster(Path(directory))
        try:
            cluster.start_head()
            cluster.start_worker()
            yield cluster
        finally:
            cluster.stop()
