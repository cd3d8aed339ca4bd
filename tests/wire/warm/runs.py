"""Runs of an entrypoint that begin as forks of a parked process, without a supervisor."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.clusters.control_plane import make_spec
from support.waiting import wait_until

from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute_launch.container.entrypoint_process import (
    EntrypointProcess,
    Shell,
    StartedProcess,
    barrier_file,
)
from resolute_launch.container.task import Task
from resolute_launch.exec.entrypoint import plan
from resolute_launch.installation import INTERPRETER
from resolute_launch.warm.client import WarmStart

WARM: dict[str, Any] = {
    "environment": {"environment_variables": {"cpu": ["FROM_CONFIG=yes"]}, "warm_start": {"enabled": True}}
}
AUTO: dict[str, Any] = {
    "environment": {**WARM["environment"], "warm_start": {"enabled": "auto"}},
    "searcher": {"name": "random", "metric": "loss", "max_trials": 9},
}
SCRIPT = ["python3", "train.py"]
STARTS_A_THREAD = """
import threading
threading.Thread(target=threading.Event().wait, name='started', daemon=True).start()
"""
IDLE_SECONDS = 3600.0
"""Longer than any test: a parked process ends when its test says so."""


@dataclass
class Started:
    """One run of an entrypoint without a supervisor: its processes, and what they wrote."""

    run: RunDirectory
    process: EntrypointProcess
    said: list[str]
    """What the log of the trial would say."""

    def finish(self) -> int:
        self.process.wait_without_reaping()
        return self.process.reap()

    def text(self) -> str:
        output = (self.run.path / "output").read_text() + (self.run.path / "errors").read_text()
        return output.replace(str(self.run.path), "RUN")


def start(
    folder: Path,
    name: str,
    entrypoint: Any,
    files: Mapping[str, str],
    *,
    warm: bool = True,
    environ: Mapping[str, str] | None = None,
    slot: int = 0,
    experiment: str = "experiment-1",
    config: Mapping[str, Any] = WARM,
) -> Started:
    run = RunDirectory(folder / name)
    run.prepare()
    for path, text in files.items():
        (run.work / path).write_text(text)
    os.mkfifo(barrier_file(run))
    order = LaunchOrder(
        allocation_id=name, master="", token="", slot_ids=(slot,), warm_directory=str(folder / "warm")
    )
    task = Task(make_spec(entrypoint, config=dict(config), experiment_id=experiment), order, run)
    base = {key: value for key, value in os.environ.items() if not key.startswith(("DET_", "RESOLUTE_"))}
    environment = {
        **base,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(INTERPRETER),
        "PYTHONUNBUFFERED": "1",
        "DET_SESSION_TOKEN": f"secret-of-{name}",
        "RESOLUTE_RUN_DIR": str(run.path),
        **(environ or {}),
    }
    said: list[str] = []
    argv = plan(entrypoint, python=sys.executable).argv
    with (run.path / "output").open("wb") as out, (run.path / "errors").open("wb") as err:
        process: StartedProcess | None = None
        streams = {"stdout": out.fileno(), "stderr": err.fileno()}
        if warm:
            warm_start = WarmStart(
                task, interrupted=lambda: False, log_line=said.append, idle_seconds=IDLE_SECONDS
            )
            process = warm_start.fork(argv, environment=environment, **streams)
        process = process or Shell.start(run, environment=environment, **streams)
    started = Started(run, EntrypointProcess(process, run), said)
    started.process.release(argv, {"RESOLUTE_COLLECTIVE_KEY": f"key-of-{name}"})
    return started


WAITS = {"train.py": "import os, sys\nprint(os.getppid(), flush=True)\nopen(sys.argv[1]).read()"}


def waiting_run(folder: Path, name: str, **options: Any) -> tuple[Started, Path]:
    """Starts a run that goes on until its fifo is written to."""
    fifo = folder / f"{name}.fifo"
    os.mkfifo(fifo)
    started = start(folder, name, ["python3", "train.py", str(fifo)], WAITS, **options)
    wait_until(started.text)
    return started, fifo


def parent_of(started: Started) -> int:
    return int(started.text())


def end_of(started: Started, fifo: Path) -> int:
    fifo.write_text("go on")
    return started.finish()


def parked_process(folder: Path) -> int:
    """Finds the parked process of a folder, which the kernel knows by the lock that it holds."""
    (lock,) = (folder / "warm").glob("*/lock")
    (inode,) = {str(lock.stat().st_ino)}
    (line,) = [line for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line]
    return int(line.split()[4])


def missing(path: Path) -> bool:
    """Whether nothing is there."""
    return not path.exists()
