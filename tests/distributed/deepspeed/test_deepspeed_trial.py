"""Training a ``DeepSpeedTrial`` with two real ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.backends import need_module
from support.ports import free_port

TESTS = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("deepspeed_ranks.py")

need_module("deepspeed")


def test_zero_pipelines_and_model_parallel_units_stop_together_and_resume_exactly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deepspeed.launcher.runner", "--hostfile", "", "--num_gpus", "2"]
    command += ["--master_port", str(free_port()), "--no_local_rank", str(SCRIPT), str(tmp_path)]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
        "PYTHONPATH": str(TESTS),
        "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in tmp_path.glob("passed-*")} == {"passed-0", "passed-1"}


def test_what_a_trial_may_do_and_what_it_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT.with_name("deepspeed_single_process.py")), str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "passed").exists()
