"""Forked data loader workers never hang and never speak, whatever their parent is doing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial
from support.suite.sampling import Sample

SCRIPT = Path(__file__).with_name("trainer_that_forks.py")


@contextmanager
def load(count: int) -> Iterator[None]:
    """Keeps processors busy, which is when races show."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@pytest.mark.integration
def test_forked_workers_neither_hang_nor_report(trial: Trial, sample: Sample) -> None:
    epochs, forks = sample.size(whole=25, part=5), sample.size(whole=150, part=40)
    with load(2):
        result = subprocess.run(
            [sys.executable, "-W", "error::UserWarning", str(SCRIPT), str(epochs), str(forks)],
            env={**os.environ, **trial.environment(), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout == f"done {4 * epochs}\n"
    assert len(trial.series("training", "loss")) == 4 * epochs
