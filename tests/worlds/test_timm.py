"""The walk-through with timm: a script that runs as it is, and what each of the four steps brings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.embedded import EmbeddedCluster, embedded, eventually

pytestmark = pytest.mark.xdist_group("world-timm")

STEPS = Path(__file__).parents[2] / "examples" / "timm"
INSTALLED = Path(sys.prefix) / "timm"
if not (INSTALLED / "timm").is_dir():
    pytest.skip("timm is not installed: make worlds installs it", allow_module_level=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with embedded(tmp_path_factory.mktemp("home"), slots=2, PATH=path) as running:
        yield running


def create(cluster: EmbeddedCluster, config: str, *options: str) -> str:
    said = cluster.det("e", "create", config, ".", *options, cwd=STEPS, timeout=240).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    return found[1]


def described(cluster: EmbeddedCluster, experiment: str) -> dict[str, object]:
    (description,) = cluster.json("e", "describe", experiment, "--metrics")
    return dict(description)


def reported(cluster: EmbeddedCluster, experiment: str, group: str, *, trial: int = 0) -> list[int]:
    (description,) = cluster.json("e", "describe", experiment, "--metrics")
    number = description["trials"][trial]["trial"]["id"]
    return [
        report["steps_completed"]
        for report in description["metrics"]
        if report["group"] == group and report.get("trial_id", number) == number
    ]


def state(cluster: EmbeddedCluster, experiment: str) -> str:
    (description,) = cluster.json("e", "describe", experiment)
    return str(description["experiment"]["state"])


def log(cluster: EmbeddedCluster, experiment: str) -> str:
    (description,) = cluster.json("e", "describe", experiment)
    return cluster.det("t", "logs", str(description["trials"][0]["trial"]["id"])).stdout


def test_step_0_runs_as_it_is(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "step0_run.yaml", "-f")
    assert state(cluster, experiment) == "COMPLETED"
    said = log(cluster, experiment)
    assert "Training with a single process." in said
    assert len(re.findall(r"Test: loss", said)) == 5
    best = float(re.findall(r"top1 ([\d.]+)", said)[-1])
    assert best > 80


def test_step_1_has_a_process_for_each_slot(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "step1_distributed.yaml", "-f")
    assert state(cluster, experiment) == "COMPLETED"
    said = log(cluster, experiment)
    for rank in (0, 1):
        assert re.search(rf"\[rank={rank}\].*Process {rank}, total 2", said), said


def test_step_2_reports_metrics(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "step2_metrics.yaml", "-f")
    steps = reported(cluster, experiment, "validation")
    assert len(steps) == 5
    assert steps == [steps[0] * epoch for epoch in range(1, 6)]
    assert reported(cluster, experiment, "training") == steps


def test_step_3_pauses_and_goes_on_with_the_next_epoch(cluster: EmbeddedCluster) -> None:
    experiment = create(cluster, "step3_checkpoints.yaml")
    eventually(lambda: reported(cluster, experiment, "validation"), what="the first epoch", timeout=150)
    cluster.det("e", "pause", experiment)
    eventually(lambda: state(cluster, experiment) == "PAUSED", what="the pause", timeout=60)
    done = len(reported(cluster, experiment, "validation"))
    assert 1 <= done < 5
    cluster.det("e", "activate", experiment)
    cluster.det("e", "wait", experiment, timeout=200)
    assert state(cluster, experiment) == "COMPLETED"
    steps = reported(cluster, experiment, "validation")
    assert steps == [steps[0] * epoch for epoch in range(1, 6)]
    assert f"Starting with epoch {done}" in log(cluster, experiment)


def test_step_4_searches_and_trains_as_long_as_the_search_says(cluster: EmbeddedCluster) -> None:
    options = ("--config", "hyperparameters.lr.count=2", "--config", "searcher.max_length=2")
    experiment = create(cluster, "step4_hyperparameters.yaml", *options, "-f")
    (description,) = cluster.json("e", "describe", experiment, "--metrics")
    assert description["experiment"]["state"] == "COMPLETED"
    rates = sorted(trial["trial"]["hparams"]["lr"] for trial in description["trials"])
    assert rates == pytest.approx([0.01, 0.1])
    assert len([report for report in description["metrics"] if report["group"] == "validation"]) == 4
