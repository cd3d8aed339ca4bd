"""The digits trial on a real cluster: by its class, and on two slots by a launch layer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.client import Client, ExperimentState, Trial

TRIAL = Path(__file__).parents[3] / "examples" / "digits_trial"
BATCHES_PER_EPOCH = 23


@pytest.fixture
def client(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    cluster.name_in(monkeypatch)
    with Client() as connected:
        yield connected


def create(cluster: EmbeddedCluster, config: str, *options: str) -> int:
    said = cluster.det("e", "create", config, ".", *options, cwd=TRIAL, timeout=150).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    return int(found[1])


def finished_trial(cluster: EmbeddedCluster, client: Client, config: str, epochs: int) -> Trial:
    number = create(cluster, config, "-f", "--config", f"searcher.max_length.epochs={epochs}")
    (trial,) = client.get_experiment(number).list_trials()
    return trial


def reported(trial: Trial, group: str) -> list[int]:
    return [report.steps_completed for report in trial.iter_metrics(group)]


def test_a_trial_class_trains_as_its_config_says(cluster: EmbeddedCluster, client: Client) -> None:
    trial = finished_trial(cluster, client, "const.yaml", 4)
    assert reported(trial, "validation") == [BATCHES_PER_EPOCH * epoch for epoch in range(1, 5)]
    assert reported(trial, "training")[:3] == [10, 20, 23]
    validation = list(trial.iter_metrics("validation"))
    assert max(report.metrics["accuracy"] for report in validation) >= 0.9
    (checkpoint, *_) = trial.list_checkpoints()
    assert "state_dict.pth" in checkpoint.resources


@pytest.mark.sampled(1, group="trials without their cluster")
def test_a_trial_class_runs_again_without_its_cluster_to_the_same_bits(
    cluster: EmbeddedCluster, client: Client, tmp_path: Path
) -> None:
    trial = finished_trial(cluster, client, "const.yaml", 2)
    again = cluster.run("resolute", "reproduce", str(trial.id), "--run", cwd=tmp_path, timeout=300)
    assert f"have equal weights after {2 * BATCHES_PER_EPOCH} steps" in again.stdout


@pytest.mark.sampled(1, group="trainings at length")
def test_a_trial_class_that_is_paused_reports_what_one_does_that_is_not(
    cluster: EmbeddedCluster, client: Client
) -> None:
    longer = ("--config", "searcher.max_length.epochs=20")
    numbers = [create(cluster, "const.yaml", *longer) for _ in range(2)]
    whole, paused = (client.get_experiment(number).await_first_trial() for number in numbers)
    wait_until(lambda: reported(paused, "validation"), what="the first validation")
    cluster.det("e", "pause", str(numbers[1]))
    experiment = client.get_experiment(numbers[1])

    def is_paused() -> bool:
        experiment.reload()
        return experiment.state is ExperimentState.PAUSED and bool(experiment.list_checkpoints())

    wait_until(is_paused, what="the pause")
    cluster.det("e", "activate", str(numbers[1]))
    for number in numbers:
        cluster.det("e", "wait", str(number), timeout=120)
    for group in ("training", "validation"):
        assert metrics_of(paused, group) == metrics_of(whole, group)
    assert reported(whole, "validation") == [BATCHES_PER_EPOCH * epoch for epoch in range(1, 21)]
    runs = cluster.json("t", "describe", str(paused.id))[0]["trial"]["runs"]
    assert [run["outcome"] for run in runs] == ["PREEMPTED", "COMPLETED"]


def metrics_of(trial: Trial, group: str) -> list[tuple[int, Any]]:
    return [(report.steps_completed, report.metrics) for report in trial.iter_metrics(group)]


@pytest.mark.sampled(1, group="trainings at length")
def test_the_search_finds_hyperparameters_that_train_well(cluster: EmbeddedCluster, client: Client) -> None:
    """The adaptive config in full."""
    number = create(cluster, "adaptive.yaml")
    cluster.det("e", "wait", str(number), timeout=280)
    experiment = client.get_experiment(number)
    trials = experiment.list_trials()
    assert len(trials) == 8
    lengths = {trial.id: max(reported(trial, "validation")) for trial in trials}
    assert max(lengths.values()) == 8 * BATCHES_PER_EPOCH
    assert min(lengths.values()) < 8 * BATCHES_PER_EPOCH  # the rest were not worth their time
    best = experiment.top_checkpoint().training
    assert best is not None
    assert best.validation_metrics["accuracy"] >= 0.9
