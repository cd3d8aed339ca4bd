"""The digits example on a real cluster: trains well, and a pause in mid-training costs nothing but time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.embedded import EmbeddedCluster, embedded, eventually

from resolute.client import Determined, ExperimentState, Trial

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-digits"), pytest.mark.timeout(180)]

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
BATCHES_PER_EPOCH = 23


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=1) as started:
        yield started


@pytest.fixture
def client(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Determined]:
    monkeypatch.delenv("RESOLUTE_MASTER", raising=False)
    monkeypatch.delenv("DET_MASTER", raising=False)
    monkeypatch.setenv("RESOLUTE_HOME", str(cluster.home))
    with Determined() as connected:
        yield connected


def create(cluster: EmbeddedCluster, *options: str) -> int:
    said = cluster.det("e", "create", "const.yaml", ".", *options, cwd=DIGITS, timeout=120).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    return int(found[1])


def reported(trial: Trial, group: str) -> list[int]:
    return [report.steps_completed for report in trial.iter_metrics(group)]


def test_const_trains_well_and_keeps_a_checkpoint_of_every_validation(
    cluster: EmbeddedCluster, client: Determined
) -> None:
    experiment = client.get_experiment(create(cluster, "-f", "--config", "searcher.max_length.epochs=6"))
    (trial,) = experiment.list_trials()
    assert reported(trial, "validation") == [BATCHES_PER_EPOCH * epoch for epoch in range(1, 7)]
    validation = experiment.top_checkpoint().get_metrics("validation")
    assert max(report.metrics["accuracy"] for report in validation) >= 0.95


def test_a_pause_in_mid_training_checkpoints_and_frees_the_slot_and_activate_goes_on(
    cluster: EmbeddedCluster, client: Determined
) -> None:
    epochs = 40
    number = create(cluster, "--config", f"searcher.max_length.epochs={epochs}")
    experiment = client.get_experiment(number)
    trial = experiment.await_first_trial()
    eventually(lambda: reported(trial, "validation"), what="the first validation")

    cluster.det("e", "pause", str(number))
    eventually(lambda: cluster.json("status")["slots"][0]["trial"] is None, what="the slot")
    experiment.reload()
    assert experiment.state is ExperimentState.PAUSED
    newest = trial.select_checkpoint(latest=True)
    stopped_at = newest.metadata["steps_completed"]
    assert max(reported(trial, "training")) <= stopped_at < epochs * BATCHES_PER_EPOCH

    cluster.det("e", "activate", str(number))
    cluster.det("e", "wait", str(number), timeout=120)
    assert any(f"going on at step {stopped_at}" in line for line in trial.iter_logs())
    # Nothing was done twice and nothing was left out.
    steps = epochs * BATCHES_PER_EPOCH
    assert reported(trial, "validation") == list(range(BATCHES_PER_EPOCH, steps + 1, BATCHES_PER_EPOCH))
    assert reported(trial, "training") == list(range(10, steps + 1, 10))
    runs = cluster.json("t", "describe", str(trial.id))[0]["trial"]["runs"]
    assert [(run["outcome"], run["exit_code"]) for run in runs] == [("PREEMPTED", 0), ("COMPLETED", 0)]
