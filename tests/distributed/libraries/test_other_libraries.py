"""Trainings by other libraries with two real ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.backends import need_module
from support.ports import free_port
from support.suite.sampling import Sample
from support.training.exactness import PROGRAMS

TESTS = Path(__file__).resolve().parents[2]


def train(script: str, directory: Path, *arguments: str, ranks: int = 2) -> None:
    """Runs a script by torchrun, each rank of which says that it has passed."""
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}"]
    command += [
        "--master_addr=127.0.0.1",
        f"--master_port={free_port()}",
        str(Path(__file__).with_name(script)),
        str(directory),
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
        "PYTHONPATH": str(TESTS),
        "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
    }
    done = subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in directory.glob("passed-*")} == {f"passed-{rank}" for rank in range(ranks)}


@pytest.mark.parametrize("library", ["lightning", "hugging_face"])
def test_two_ranks_stop_together_and_go_on_from_what_they_saved(library: str, tmp_path: Path) -> None:
    train("other_library_ranks.py", tmp_path, library)


@pytest.mark.parametrize("library", ["lightning", "accelerate", "hugging_face"])
def test_two_ranks_that_are_paused_end_as_if_they_had_not_been(
    library: str, tmp_path: Path, sample: Sample
) -> None:
    train("exact_ranks.py", tmp_path, library, str(1 + sample.number % 6))


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_two_ranks_of_deepspeed_that_are_paused_end_as_if_they_had_not_been(
    stage: int, tmp_path: Path, sample: Sample
) -> None:
    need_module("deepspeed")
    train("exact_ranks.py", tmp_path, f"hugging_face_zero_{stage}", str(1 + sample.number % 6))


@pytest.mark.parametrize("row", PROGRAMS)
def test_the_page_says_what_a_pause_keeps_with_deepspeed(row: str, tmp_path: Path, sample: Sample) -> None:
    need_module("deepspeed")
    train("exact_table.py", tmp_path, str(1 + sample.number % 3), row, ranks=1)
