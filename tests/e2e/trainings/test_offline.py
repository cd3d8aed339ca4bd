"""A run is recorded without a cluster and sent to one later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster

SCRIPT = """
import os, sys
import numpy as np
from resolute import core

with core.init() as context:
    context.train.set_metadata({"machine": "laptop"})
    for step in range(int(sys.argv[1])):
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / (step + 1)})
    context.train.report_validation_metrics(steps_completed=step, metrics={"loss": 0.5, "note": "good"})
    context.train.log_text("said", "hello", steps_completed=step)
    context.train.log_image("noise", np.random.default_rng(0).random((60, 60, 3)), steps_completed=step)
    os.kill(os.getpid(), 9)  # a crash loses nothing that was reported
"""
REPORTS = 5000


@pytest.mark.integration
def test_a_run_recorded_offline_arrives_whole_and_once_however_often_it_is_sent(tmp_path: Path) -> None:
    script, recorded = tmp_path / "train.py", tmp_path / "recorded"
    script.write_text(SCRIPT)
    environment = {**os.environ, "RESOLUTE_OFFLINE_DIR": str(recorded)}
    command = [sys.executable, str(script), str(REPORTS)]
    assert subprocess.run(command, env=environment, check=False).returncode == -9

    cluster = EmbeddedCluster(tmp_path / "home", slots=1)
    cluster.up()
    try:
        first = cluster.run("resolute", "sync", str(recorded)).stdout
        again = cluster.run("resolute", "sync", str(next(recorded.iterdir()))).stdout
        trial = cluster.json("trial", "describe", "1", "--metrics-summary")[0]
        experiment = cluster.json("experiment", "describe", "1")
        media = cluster.json("trial", "media", "1")
        fetched = cluster.run("resolute", "trial", "media", "1", "-o", str(tmp_path / "media")).stdout
        cluster.run("resolute", "experiment", "delete", "1", "--yes")
    finally:
        cluster.down()

    assert first == again
    assert first.endswith(": trial 1 of experiment 1\n")
    assert trial["trial"]["state"] == "COMPLETED"
    counts = {(item["group"], item["name"]): item["count"] for item in trial["metrics_summary"]}
    assert counts[("training", "loss")] == REPORTS
    assert counts[("validation", "loss")] == 1
    assert "train.py" in str(experiment)
    assert [(one["name"], one["steps_completed"]) for one in media] == [
        ("said", REPORTS - 1),
        ("noise", REPORTS - 1),
    ]
    assert [Path(path).stat().st_size for path in fetched.splitlines()] == [one["size"] for one in media]


def test_a_directory_without_runs_is_an_error_that_says_so(tmp_path: Path) -> None:
    program = "from resolute.cli.main import main; main()"
    command = [sys.executable, "-c", program, "sync", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "no recorded run lies in" in result.stderr
