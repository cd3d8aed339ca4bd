"""Checkpoints of torch.distributed.checkpoint: two real ranks, each with a part of a tensor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("sharded_ranks.py")


def test_two_ranks_save_their_shards_and_take_them_up_in_other_layouts(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
            *(str(SCRIPT), str(tmp_path / "store")),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    checkpoint_id = done.stdout.split()[-1]
    names = {path.name for path in (tmp_path / "store" / checkpoint_id).iterdir()}
    assert {".metadata", "metadata.json", "__0_0.distcp", "__1_0.distcp"} <= names
