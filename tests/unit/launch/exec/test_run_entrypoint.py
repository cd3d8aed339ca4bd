"""The entrypoint of a trial, run by the name that programs know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from resolute.info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo

COMPAT = Path(__file__).resolve().parents[4] / "compat"


def launch(directory: Path, entrypoint: Any, *, on_cluster: bool = True) -> subprocess.CompletedProcess[str]:
    if on_cluster:
        ClusterInfo(
            master_url="http://127.0.0.1:1",
            cluster_id="cluster",
            agent_id="agent",
            slot_ids=[0],
            task_id="trial-1",
            allocation_id="allocation",
            session_token="",
            task_type="TRIAL",
            trial_info=TrialInfo(1, 1, 0, {}, {"entrypoint": entrypoint}, 0, 1),
            rendezvous_info=RendezvousInfo(["127.0.0.1"], 0, [1]),
            resources_info=ResourcesInfo([]),
        ).write(directory)
    return subprocess.run(
        [sys.executable, "-m", "determined.exec.launch"],
        env={**os.environ, "PYTHONPATH": str(COMPAT), "RESOLUTE_INFO_DIR": str(directory)},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("entrypoint", "said", "exit_code"),
    [
        ("echo one $((1 + 1)); exit 5", "one 2\n", 5),
        (["echo", "$((1 + 1))", 3], "$((1 + 1)) 3\n", 0),
        (["sh", "-c", "kill -TERM $$"], "", -15),
    ],
)
def test_it_becomes_the_command_of_the_config(
    tmp_path: Path, entrypoint: Any, said: str, exit_code: int
) -> None:
    done = launch(tmp_path, entrypoint)
    assert (done.stdout, done.returncode) == (said, exit_code)


def test_a_trial_class_is_run_by_the_harness(tmp_path: Path) -> None:
    done = launch(tmp_path, "no_such_module:Trial")
    assert done.returncode == 1
    assert "names the module no_such_module, which is not in the model definition" in done.stderr


@pytest.mark.parametrize(
    ("entrypoint", "on_cluster", "message", "exit_code"),
    [
        ("true", False, "no trial of a cluster runs here", 1),
        (
            f"{sys.executable} -m determined.exec.launch",
            True,
            "which runs the entrypoint: name the training script",
            1,
        ),
        (None, True, "give a command as text or as a list", 1),
        (["no-such-program"], True, "cannot run 'no-such-program'", 127),
    ],
)
def test_what_cannot_be_run_is_said(
    tmp_path: Path, entrypoint: Any, on_cluster: bool, message: str, exit_code: int
) -> None:
    done = launch(tmp_path, entrypoint, on_cluster=on_cluster)
    assert done.returncode == exit_code
    assert message in done.stderr
