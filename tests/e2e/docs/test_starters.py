"""What `resolute init` writes trains here, and as an experiment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster

from resolute.cli.init import STARTERS
from resolute.cli.main import run

pytestmark = pytest.mark.integration


@pytest.fixture
def project(tmp_path: Path, kind: str) -> Path:
    assert run(["init", kind, str(tmp_path / kind)]) == 0
    return tmp_path / kind


@pytest.mark.sampled(1, group="starters")
@pytest.mark.parametrize("kind", STARTERS)
def test_a_starter_trains_without_a_cluster(project: Path) -> None:
    named = ("DET_", "RESOLUTE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(named)}
    environment |= {"XDG_DATA_HOME": str(project / "data"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sampled(1, group="starters")
@pytest.mark.parametrize("kind", STARTERS)
def test_a_starter_is_an_experiment_that_completes(project: Path, cluster: EmbeddedCluster) -> None:
    said = cluster.run("resolute", "experiment", "create", "config.yaml", "-f", cwd=project, timeout=240)
    assert "COMPLETED" in said.stdout
    assert "fetch the best checkpoint with" in said.stdout


@pytest.mark.sampled(1, group="starters")
@pytest.mark.parametrize("kind", ["pytorch"])
def test_a_script_that_is_run_without_a_config_trains_as_long_as_it_says(
    project: Path, cluster: EmbeddedCluster
) -> None:
    said = cluster.run("resolute", "run", "train.py", cwd=project, timeout=240)
    # Other tests train on this cluster too.
    (trial,) = re.findall(r"^following trial (\d+)$", said.stdout, re.MULTILINE)
    found = cluster.json("trial", "describe", trial)[0]["trial"]
    assert (found["state"], found["restarts"]) == ("COMPLETED", 0)
    assert found["steps_completed"] == 48, "three epochs of sixteen batches"


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("mine")
    assert run(["init", "core", str(tmp_path)]) == 1
    assert "has train.py already, and nothing was written" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["train.py"]
    assert (tmp_path / "train.py").read_text() == "mine"
