"""Trainings by other libraries with two real ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.ports import free_port

TESTS = Path(__file__).resolve().parents[1]
SCRIPT = Path(__file__).with_name("other_library_ranks.py")


@pytest.mark.distributed
@pytest.mark.integration
@pytest.mark.parametrize("library", ["lightning", "hugging_face"])
def test_two_ranks_stop_together_and_go_on_from_what_they_saved(library: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1"]
    command += [f"--master_port={free_port()}", str(SCRIPT), str(tmp_path), library]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(TESTS),
        "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in tmp_path.glob("passed-*")} == {"passed-0", "passed-1"}
