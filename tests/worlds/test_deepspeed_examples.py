"""The examples with DeepSpeed on a real cluster: two ranks train, are paused, and go on bit for bit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.embedded import EmbeddedCluster, embedded, eventually

pytestmark = pytest.mark.xdist_group("world-deepspeed-trial")
pytest.importorskip("deepspeed", reason="DeepSpeed is not installed: make worlds installs it")

EXAMPLE = Path(__file__).parents[2] / "examples" / "deepspeed"
EPOCHS = 60
SHOWN = "import logging\nlogging.basicConfig(level=logging.INFO)"
LONG = ("--config", f"searcher.max_length.epochs={EPOCHS}", "--config", "reproducibility.experiment_seed=3")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


def create(cluster: EmbeddedCluster, config: str, *options: str) -> str:
    said = cluster.det("e", "create", config, ".", *options, cwd=EXAMPLE, timeout=250).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    return found[1]


def describe(cluster: EmbeddedCluster, experiment: str) -> Any:
    (description,) = cluster.json("e", "describe", experiment, "--metrics")
    return description


def log(cluster: EmbeddedCluster, experiment: str) -> str:
    return cluster.det("t", "logs", str(describe(cluster, experiment)["trials"][0]["trial"]["id"])).stdout


def state(cluster: EmbeddedCluster, experiment: str) -> str:
    return str(describe(cluster, experiment)["experiment"]["state"])


def reports(cluster: EmbeddedCluster, experiment: str, group: str) -> dict[int, dict[str, float]]:
    found = [report for report in describe(cluster, experiment)["metrics"] if report["group"] == group]
    by_step = {report["steps_completed"]: report["metrics"] for report in found}
    assert len(by_step) == len(found), "a step was reported twice"
    return by_step


def pause_and_go_on(cluster: EmbeddedCluster, experiment: str) -> None:
    eventually(lambda: reports(cluster, experiment, "validation"), what="a validation", timeout=150)
    cluster.det("e", "pause", experiment)
    eventually(lambda: state(cluster, experiment) == "PAUSED", what="the pause", timeout=90)
    cluster.det("e", "activate", experiment)
    cluster.det("e", "wait", experiment, timeout=200)
    assert state(cluster, experiment) == "COMPLETED", log(cluster, experiment)


def test_a_paused_trial_goes_on_bit_for_bit(cluster: EmbeddedCluster) -> None:
    whole = create(cluster, "trial.yaml", *LONG, "-f")
    assert state(cluster, whole) == "COMPLETED", log(cluster, whole)
    paused = create(cluster, "trial.yaml", *LONG)
    pause_and_go_on(cluster, paused)
    for group in ("validation", "training"):
        assert reports(cluster, paused, group) == reports(cluster, whole, group)
    validations = reports(cluster, whole, "validation")
    assert len(validations) == EPOCHS
    assert max(metrics["accuracy"] for metrics in validations.values()) > 0.9
    checkpoints = cluster.json("e", "list-checkpoints", paused)
    assert len(checkpoints) >= 2


def test_a_pipeline_of_two_stages_learns(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "pipeline.yaml", "-f")
    assert state(cluster, experiment) == "COMPLETED", log(cluster, experiment)
    losses = [metrics["validation_loss"] for metrics in reports(cluster, experiment, "validation").values()]
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 2


def test_a_loop_of_ones_own_keeps_its_shards(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "core_api.yaml", "--config", f"searcher.max_length={EPOCHS}")
    pause_and_go_on(cluster, experiment)
    said = log(cluster, experiment)
    stopped, resumed = (
        re.findall(rf"{words} (\d+)", said) for words in ("stopped after epoch", "resumed with epoch")
    )
    assert len(stopped) == 2
    assert stopped == resumed
    assert len(reports(cluster, experiment, "validation")) == EPOCHS


def run_alone(script: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in one process, without a cluster and without a launcher."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "RESOLUTE_"))}
    paths = {"XDG_DATA_HOME": str(home), "PYTHONPATH": str(EXAMPLE.parents[1] / "compat")}
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=script.parent,
        env={**given, **paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_script_runs_without_a_cluster(tmp_path: Path) -> None:
    assert "accuracy" in run_alone(EXAMPLE / "train.py", tmp_path, "--epochs", "1").stderr


def test_what_the_page_shows_works_as_it_is_shown(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "deepspeed.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "page.py").write_text("\n".join([SHOWN, *blocks]))
    done = run_alone(tmp_path / "page.py", tmp_path)
    assert len(re.findall("validation metrics at", done.stderr)) == 2
