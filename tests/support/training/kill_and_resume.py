"""Killing a training in its midst, and what is left in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from support.training.ranks import processes as rank_processes
from support.training.trials import equal, newest_checkpoint

SCRIPT = Path(__file__).parents[2] / "distributed" / "resumable_training.py"
BATCHES = 60


def assert_resume_is_exact(directory: Path, backend: str) -> None:
    """Kills one of two trainings after a checkpoint, continues from there, and compares with the other."""
    whole, parts = directory / "whole", directory / "parts"
    for path in (whole, parts):
        path.mkdir()
    rank_processes.finish(backend, SCRIPT, str(whole), backend, str(BATCHES))
    _start_and_kill(backend, parts)
    checkpoint = newest_checkpoint(parts)
    assert not list(parts.glob("left-*")), "the training was over before it was killed"
    rank_processes.finish(backend, SCRIPT, str(parts), backend, str(BATCHES), checkpoint)
    for rank in range(1 if backend == "alone" else 2):
        expected, found = (_left(path, rank) for path in (whole, parts))
        first = found["seen"][0]
        assert first >= 10
        assert found["seen"] == list(range(first, BATCHES))
        assert equal(found["state"], expected["state"])
        assert found["reports"] == [report for report in expected["reports"] if report[1] > first]


def _start_and_kill(backend: str, directory: Path) -> None:
    """Starts a training and kills it, launcher and all, once it is beyond its first checkpoint."""
    with rank_processes.start(backend, SCRIPT, str(directory), backend, "1000000") as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.strip().endswith("batch 23"):
                    break
            else:
                raise AssertionError("the training ended before it could be killed")
        finally:
            rank_processes.end_all(process)


def _left(directory: Path, rank: int) -> dict[str, Any]:
    left: dict[str, Any] = torch.load(directory / f"left-{rank}.pt", weights_only=False)
    return left
