"""TensorBoard as a task: whose files it shows, and until when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock

from resolute_launch.exec.tensorboard import Board, Requests, fetch


def test_requests_show_that_somebody_looks() -> None:
    clock = ManualClock()
    seen: list[Any] = []

    def application(environ: Any, start_response: Any) -> list[bytes]:
        seen.append((environ, start_response))
        return [b"answer"]

    requests = Requests(application, clock)
    clock.advance(7.0)
    assert requests.idle_seconds == pytest.approx(7.0)
    assert requests({"PATH_INFO": "/"}, print) == [b"answer"]
    assert seen == [({"PATH_INFO": "/"}, print)]
    assert requests.idle_seconds == 0.0


def test_directories_are_read_where_they_are(tmp_path: Path) -> None:
    storage = {"type": "shared_fs", "host_path": str(tmp_path), "storage_path": "kept"}
    board = Board(
        sources=[{"name": "experiment 1", "storage": storage, "path": "c/tensorboard/experiment/1"}]
    )
    assert fetch(board, tmp_path / "scratch") == {
        "experiment 1": tmp_path / "kept/c/tensorboard/experiment/1"
    }
