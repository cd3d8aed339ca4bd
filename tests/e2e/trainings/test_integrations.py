"""Trainings by other libraries on a real cluster: they report, and a pause costs them nothing but time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.client import Client, ExperimentState, Trial

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def client(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    cluster.name_in(monkeypatch)
    with Client() as connected:
        yield connected


def losses(trial: Trial) -> dict[int, float]:
    """Of training, by the number of batches."""
    return {
        report.steps_completed: report.metrics["loss"]
        for report in trial.iter_metrics("training")
        if "loss" in report.metrics
    }


@pytest.mark.sampled(1, group="trainings at length")
@pytest.mark.parametrize(
    ("example", "options", "steps"),
    [
        ("digits_lightning", ("searcher.max_length.epochs=40",), 40 * 23),
        ("text_transformers", ("searcher.max_length.batches=300", "hyperparameters.max_steps=300"), 300),
        ("digits_accelerate", ("searcher.max_length.epochs=60",), 60 * 23),
    ],
)
def test_a_paused_trial_goes_on_where_it_stopped(
    cluster: EmbeddedCluster, client: Client, example: str, options: tuple[str, ...], steps: int
) -> None:
    settings = [word for option in options for word in ("--config", option)]
    said = cluster.det("e", "create", "const.yaml", ".", *settings, cwd=EXAMPLES / example).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    experiment = client.get_experiment(int(found[1]))
    trial = experiment.await_first_trial()
    wait_until(lambda: len(losses(trial)) >= 2, what="the first reports", seconds=120)

    cluster.det("e", "pause", found[1])
    wait_until(
        lambda: all(slot["trial"] is None for slot in cluster.json("status")["slots"]),
        what="the slot",
        pause=0.3,
    )
    experiment.reload()
    assert experiment.state is ExperimentState.PAUSED
    stopped_at = trial.select_checkpoint(latest=True).metadata["steps_completed"]
    before = losses(trial)
    assert max(before) <= stopped_at < steps

    cluster.det("e", "activate", found[1])
    cluster.det("e", "wait", found[1], timeout=200)
    after = losses(trial)
    # Nothing was done twice, nothing was left out, and the weights were not made again.
    assert after.keys() - {stopped_at} == set(range(10, steps + 1, 10)) - {stopped_at}
    assert {step: after[step] for step in before} == before
    assert after[min(after.keys() - before.keys())] < after[10]
    assert max(report.steps_completed for report in trial.iter_metrics("validation")) == steps
    assert trial.select_checkpoint(latest=True).metadata["steps_completed"] == steps
    runs = cluster.json("t", "describe", str(trial.id))[0]["trial"]["runs"]
    assert [(run["outcome"], run["exit_code"]) for run in runs] == [("PREEMPTED", 0), ("COMPLETED", 0)]
