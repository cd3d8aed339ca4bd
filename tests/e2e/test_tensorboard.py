"""The real TensorBoard shows what an experiment wrote beside its checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.ports import free_port
from support.waiting import wait_until

SCRIPT = """
from resolute import core

with core.init() as context:
    for step in range(1, 6):
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / step})
    context.train.report_validation_metrics(steps_completed=5, metrics={"loss": 0.5})
"""
CONFIG = """
name: board
entrypoint: python3 train.py
searcher: {name: single, metric: loss}
max_restarts: 0
"""


@pytest.mark.integration
def test_tensorboard_serves_the_scalars_of_a_trial(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(SCRIPT)
    (code / "config.yaml").write_text(CONFIG)
    cluster = EmbeddedCluster(tmp_path / "home", slots=1)
    cluster.up()
    try:
        cluster.det("experiment", "create", str(code / "config.yaml"), str(code))
        cluster.det("experiment", "wait", "1")
        port = free_port()
        command = [str(Path(sys.executable).parent / "resolute"), "tensorboard", "1", "--port", str(port)]
        board = subprocess.Popen(
            command, env=cluster.variables(), stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            tags = f"http://127.0.0.1:{port}/data/plugin/scalars/tags"
            wait_until(lambda: "validation/loss" in _read(tags), what="the scalars")
        finally:
            os.killpg(board.pid, signal.SIGTERM)
            board.wait(20)
    finally:
        cluster.down()


def _read(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return str(response.read().decode())
    except (urllib.error.URLError, OSError):
        return ""
