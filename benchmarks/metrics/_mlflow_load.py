"""Drives MLflow's own server, or FastTrackML's, with MLflow's client; runs in an interpreter that has both.

Started by ``beside_mlflow.py`` and ``beside_trackers.py``; prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

NAMES = [f"metric_{number}" for number in range(10)]
_BATCH = 100
"""Reports in one ``log_batch``: MLflow takes at most 1000 metrics at once."""
_ASYNC_REPORTS = 50
"""Few: the queue behind the call empties slowly, and the benchmark waits for it."""
_START_SECONDS = 120.0


@contextmanager
def serving(folder: Path, name: str) -> Iterator[str]:
    """Runs a server over SQLite; that of MLflow fsyncs each commit by default."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    database, artifacts = f"sqlite://{folder / 'tracking.db'}", str(folder / "artifacts")
    command = {
        "mlflow": [
            *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
            *("--backend-store-uri", database.replace("://", ":///"), "--default-artifact-root", artifacts),
        ],
        "fasttrackml": [
            *(str(Path(sys.executable).with_name("fml")), "server", "--listen-address", f"127.0.0.1:{port}"),
            *("--database-uri", database, "--default-artifact-root", artifacts),
        ],
    }[name]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _await(f"{address}/health")
            yield address
        finally:
            server.terminate()
            server.wait()


def _await(url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _rate(call: Callable[[int], Any], seconds: float) -> float:
    """Calls a second, over some seconds."""
    call(0)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        done += 1
        call(done)
    return done / (time.perf_counter() - began)


def measure(seconds: float, name: str) -> dict[str, float | str]:
    """Measures each way to log, for some seconds each."""
    import mlflow  # type: ignore[import-not-found,unused-ignore]
    from mlflow.entities import Metric  # type: ignore[import-not-found,unused-ignore]

    client = mlflow.MlflowClient()
    run = client.create_run(client.create_experiment("bench")).info.run_id
    now = int(time.time() * 1000)

    def batch(number: int) -> None:
        steps = range(number * _BATCH, (number + 1) * _BATCH)
        client.log_batch(run, [Metric(name, step * 0.5, now, step) for step in steps for name in NAMES])

    batches = _rate(batch, seconds)
    singles = _rate(lambda step: client.log_metric(run, "single", step * 0.5, now, step), seconds)
    spent = []
    for step in range(_ASYNC_REPORTS):
        report = [Metric(f"async_{name}", step * 0.5, now, step) for name in NAMES]
        began = time.perf_counter()
        client.log_batch(run, report, synchronous=False)
        spent.append(time.perf_counter() - began)
    mlflow.flush_async_logging()
    return {
        "version": version(name),
        "batch_values": batches * _BATCH * len(NAMES),
        "single_calls": singles,
        "async_call_us": statistics.median(spent) * 1e6,
    }


def main() -> None:
    """Prints what was measured."""
    seconds, name = float(sys.argv[1]), sys.argv[2]
    with (
        tempfile.TemporaryDirectory(prefix="resolute-bench-mlflow-") as text,
        serving(Path(text), name) as address,
    ):
        os.environ["MLFLOW_TRACKING_URI"] = address
        sys.stdout.write(json.dumps(measure(seconds, name)) + "\n")


if __name__ == "__main__":
    main()
