"""A whole cluster in a process of its own, for benchmarks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from resolute.client.connection.home import Home
from resolute.rpc.channel import open_channel
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.kit.run_directories.container import containers_in
from resolute_launch.supervisor.joining.ports import ReservedPorts

_SCHEDULED = 2
"""Kind of the clock of another process that counts its processor time (`CPUCLOCK_SCHED` of Linux)."""


@dataclass(frozen=True)
class Embedded:
    """A running cluster."""

    home: Path
    channel: grpc.Channel
    pid: int
    metrics_port: int
    address: str
    """``host:port`` of gRPC."""
    url: str
    """Of the page."""
    cluster_id: str

    def numbers(self) -> dict[str, float]:
        """What it tells Prometheus, without labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as response:
            lines = response.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def processor_seconds(self) -> float:
        """Processor time of the control plane so far, to the nanosecond: ``/proc`` counts in hundredths."""
        return processor_seconds_of(self.pid)


def processor_seconds_of(pid: int) -> float:
    """Processor time of a process so far, all its threads, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | _SCHEDULED)


@contextmanager
def embedded(*, slots: int = 1) -> Iterator[Embedded]:
    """Serves an empty home until the block ends, and ends what runs there then."""
    with tempfile.TemporaryDirectory(prefix="resolute-bench-") as folder:
        reserved = ReservedPorts("127.0.0.1", 1)
        (port,) = reserved.numbers
        reserved.release()
        environment = {**os.environ, "RESOLUTE_HOME": folder, "OMP_NUM_THREADS": "1"}
        command = ["-m", "resolute_embedded", "--slots", str(slots), "--metrics-port", str(port)]
        process = subprocess.Popen(
            [sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            process.stdout.readline()
            endpoint = Home(Path(folder)).read_endpoint()
            assert endpoint is not None
            with open_channel(endpoint.address, token=endpoint.token_path.read_text) as channel:
                yield Embedded(
                    home=Path(folder),
                    channel=channel,
                    pid=process.pid,
                    metrics_port=port,
                    address=endpoint.address,
                    url=endpoint.http_url,
                    cluster_id=endpoint.cluster_id,
                )
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            _end_trials(StateDirectory(Home(Path(folder))).runs)


def _end_trials(runs: Path) -> None:
    """Ends the trials of a cluster that was stopped: they outlive it for the next start to adopt them."""
    for allocation in runs.iterdir() if runs.is_dir() else ():
        for container in containers_in(runs, allocation.name):
            container.kill()
