"""Every trial of a search starts from the checkpoint that its config names; a test is as short as can be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster

pytestmark = pytest.mark.sampled(2, group="clusters of their own", files=True)

CONFIG = """
name: starts
entrypoint: python3 train.py
hyperparameters: {lr: {type: double, minval: 0.1, maxval: 0.2}}
max_restarts: 3
checkpoint_storage: {save_trial_latest: 2}
searcher:
  metric: loss
  max_length: {batches: 4}
"""
SCRIPT = """
import json
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    print("start:", json.dumps({"from": info.latest_checkpoint, "hparams": info.trial.hparams}))
    step = 0
    for op in core.searcher.operations():
        while step < op.length:
            step += 2 if op.length > 1 else 1
            with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "step").write_text(str(step))
        core.train.report_validation_metrics(step, {"loss": 1 / step})
        op.report_completed(1 / step)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("project")
    (project / "train.py").write_text(SCRIPT)
    return project


@pytest.fixture(scope="module")
def first(shared_cluster: EmbeddedCluster, folder: Path) -> str:
    """An experiment whose trial has two checkpoints."""
    return submit(shared_cluster, folder, "  name: single\n")


def submit(cluster: EmbeddedCluster, folder: Path, searcher: str, *options: str) -> str:
    """Submits an experiment and waits for its end; returns its number."""
    (folder / "config.yaml").write_text(CONFIG + searcher)
    made = cluster.det("e", "create", "config.yaml", ".", *options, cwd=folder)
    number = str(cluster.json("e", "list", "--all")[0]["id"])
    assert f"experiment {number}" in made.stdout + made.stderr
    cluster.det("e", "wait", number, timeout=120)
    return number


def trials(cluster: EmbeddedCluster, number: str) -> list[dict[str, Any]]:
    """The trials of an experiment."""
    return list(cluster.json("e", "list-trials", number))


def start(cluster: EmbeddedCluster, trial: dict[str, Any]) -> dict[str, Any]:
    """What a trial found when it started."""
    lines = cluster.det("t", "logs", str(trial["id"])).stdout.splitlines()
    (line,) = [line for line in lines if "start: {" in line]
    return dict(json.loads(line.split("start: ", 1)[1]))


def test_every_trial_of_a_search_starts_from_the_trial_that_its_config_names(
    cluster: EmbeddedCluster, folder: Path, first: str
) -> None:
    (source,) = trials(cluster, first)
    assert start(cluster, source)["from"] is None
    latest = source["latest_checkpoint"]
    search = f"  name: random\n  max_trials: 2\n  source_trial_id: {source['id']}\n"
    warm = trials(cluster, submit(cluster, folder, search))
    assert [start(cluster, trial)["from"] for trial in warm] == [latest, latest]
    assert all(trial["latest_checkpoint"] != latest for trial in warm)


def test_a_checkpoint_can_be_named_itself(cluster: EmbeddedCluster, folder: Path, first: str) -> None:
    (source,) = trials(cluster, first)
    listed = cluster.json("checkpoint", "list", "--trial", str(source["id"]))
    kept = {entry["uuid"] for entry in listed}
    (older,) = kept - {source["latest_checkpoint"]}
    search = f"  name: single\n  source_checkpoint_uuid: {older}\n"
    (warm,) = trials(cluster, submit(cluster, folder, search))
    assert start(cluster, warm)["from"] == older


def test_a_test_is_one_trial_of_one_batch_that_keeps_nothing(cluster: EmbeddedCluster, folder: Path) -> None:
    number = submit(cluster, folder, "  name: random\n  max_trials: 5\n", "--test")
    (trial,) = trials(cluster, number)
    assert (trial["state"], trial["restarts"]) == ("COMPLETED", 0)
    assert 0.1 <= start(cluster, trial)["hparams"]["lr"] <= 0.2
    config = cluster.json("e", "describe", number)[0]["experiment"]["config"]
    assert (config["searcher"]["name"], config["searcher"]["max_length"]) == ("single", {"batches": 1})
    assert (config["scheduling_unit"], config["min_validation_period"]) == (1, {"batches": 1})
    assert config["max_restarts"] == 0
    assert cluster.json("checkpoint", "list", "--trial", str(trial["id"])) == []
