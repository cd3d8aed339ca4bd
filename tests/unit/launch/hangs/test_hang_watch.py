"""Which runs are watched for hangs, and what becomes of one whose processes cannot be asked."""

from __future__ import annotations

import logging
import queue
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import make_spec

from resolute.api.experiments.v1 import experiment_pb2
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.processes import ProcessTree
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute_launch.container.task import Task
from resolute_launch.hangs import watch
from resolute_launch.hangs.watch import HangSettings, HangWatch

SEARCH, COMMAND, TENSORBOARD = (
    experiment_pb2.EXPERIMENT_KIND_SEARCH,
    experiment_pb2.EXPERIMENT_KIND_COMMAND,
    experiment_pb2.EXPERIMENT_KIND_TENSORBOARD,
)


def task(path: Path, *, kind: int = SEARCH, **hang: Any) -> Task:
    run = RunDirectory(path)
    run.prepare()
    order = LaunchOrder(allocation_id="allocation-1", master="127.0.0.1:1", token="token")
    return Task(make_spec(["x"], config={"hang": hang}, kind=kind), order, run)


@pytest.mark.parametrize(
    ("kind", "after", "watched"),
    [(SEARCH, "auto", True), (COMMAND, "auto", False), (TENSORBOARD, "auto", False), (COMMAND, 60, True)],
)
def test_what_may_idle_is_watched_only_where_its_config_says_so(
    tmp_path: Path, kind: int, after: str | int, watched: bool
) -> None:
    assert HangSettings.of(task(tmp_path, kind=kind, after=after)).watched is watched


def test_a_run_whose_processes_cannot_be_asked_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError("no files of processes may be read here")

    monkeypatch.setattr(watch, "call_roll", fail)
    ends: queue.Queue[str] = queue.Queue()
    watched = HangWatch(
        task(tmp_path, after=1, on_hang="restart"),
        output=lambda: 0,
        log_line=logging.info,
        report=logging.info,
        end=ends.put,
        clock=SYSTEM_CLOCK,
    )
    watched.start(ProcessTree(None, b"RESOLUTE_TEST=no process has this"))
    try:
        assert "its processes could not be asked where they are" in ends.get(timeout=30)
    finally:
        watched.stop()
    assert ends.empty()
