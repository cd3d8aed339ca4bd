"""MLflow's UI and TensorBoard with series of numbers, each served by its own server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

_START_SECONDS = 120.0
DEFAULT_MLFLOW = Path.home() / ".cache" / "resolute" / "mlflow-venv" / "bin" / "python"
_FILL_MLFLOW = """
import json, sys
from mlflow import MlflowClient
from mlflow.entities import Metric
uri, series = sys.argv[1], json.load(sys.stdin)
client = MlflowClient(tracking_uri=uri)
experiment = client.create_experiment("beside")
runs = []
for number, values in enumerate(series):
    run = client.create_run(experiment, run_name=f"trial {number}").info.run_id
    begin = 1_700_000_000_000
    metrics = [Metric("loss", value, begin + 1000 * step, step) for step, value in enumerate(values)]
    for first in range(0, len(values), 1000):
        client.log_batch(run, metrics=metrics[first : first + 1000])
    client.set_terminated(run)
    runs.append(run)
print(json.dumps([experiment, runs]))
"""


@dataclass(frozen=True)
class Peer:
    """A page of another tool that is served."""

    url: str
    pid: int
    names: Mapping[str, str]
    """What the tool calls the data, for its addresses."""

    def processor_seconds(self) -> float:
        """Processor time of its server so far, with all processes that it has."""
        server = psutil.Process(self.pid)
        times = [one.cpu_times() for one in (server, *server.children(recursive=True))]
        return sum(one.user + one.system for one in times)


@contextmanager
def mlflow(python: Path, folder: Path, series: Sequence[Sequence[float]]) -> Iterator[Peer]:
    """Serves MLflow's UI over SQLite until the block ends.

    Args:
        python: An interpreter that has MLflow.
        folder: Where its data goes.
        series: One for each run.
    """
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    filled = subprocess.run(
        [python, "-c", _FILL_MLFLOW, uri],
        input=json.dumps(series),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    experiment, runs = json.loads(filled.stdout.splitlines()[-1])
    port = _free_port()
    command = [str(python), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += [
        "--backend-store-uri",
        uri,
        "--default-artifact-root",
        str(folder / "artifacts"),
        "--workers",
        "1",
    ]
    names = {"experiment": experiment, "first": runs[0]}
    with _serving(command, folder, f"http://127.0.0.1:{port}", ready="/health") as (url, pid):
        yield Peer(url, pid, names)


@contextmanager
def tensorboard(folder: Path, series: Sequence[Sequence[float]]) -> Iterator[Peer]:
    """Serves TensorBoard until the block ends.

    Args:
        folder: Where its events go.
        series: One for each run.
    """
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for number, values in enumerate(series):
        writer = EventFileWriter(str(folder / "events" / f"trial {number}"))
        for step, value in enumerate(values):
            summary = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
            writer.add_event(Event(wall_time=1_700_000_000.0 + step, step=step, summary=summary))
        writer.close()
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(folder / "events"),
        "--port",
        str(port),
    ]
    # As many points as there are, as far as it goes: by default it keeps 1000 of each series.
    command += ["--host", "127.0.0.1", "--samples_per_plugin", "scalars=1000"]
    with _serving(command, folder, f"http://127.0.0.1:{port}", ready="/data/runs") as (url, pid):
        _until(url, "/data/runs", lambda answer: len(json.loads(answer)) == len(series))
        yield Peer(url, pid, {})


@contextmanager
def _serving(command: list[str], folder: Path, url: str, *, ready: str) -> Iterator[tuple[str, int]]:
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=dict(os.environ)
        )
        try:
            _until(url, ready, lambda _: True)
            yield url, server.pid
        finally:
            server.terminate()
            server.wait()


def _until(url: str, path: str, holds: Callable[[bytes], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url + path, timeout=5) as response:
                if holds(response.read()):
                    return
        except (urllib.error.URLError, OSError):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"{url}{path} is not ready after {_START_SECONDS:g} s")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
