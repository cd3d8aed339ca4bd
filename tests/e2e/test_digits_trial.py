"""The digits trial on a real cluster: by its class, and on two slots by a launch layer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.embedded import EmbeddedCluster, embedded

from resolute.client import Determined, Trial

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-digits-trial"), pytest.mark.timeout(180)]

TRIAL = Path(__file__).parents[2] / "examples" / "digits_trial"
BATCHES_PER_EPOCH = 23


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as started:
        yield started


@pytest.fixture
def client(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Determined]:
    monkeypatch.delenv("RESOLUTE_MASTER", raising=False)
    monkeypatch.delenv("DET_MASTER", raising=False)
    monkeypatch.setenv("RESOLUTE_HOME", str(cluster.home))
    with Determined() as connected:
        yield connected


def finished_trial(cluster: EmbeddedCluster, client: Determined, config: str, epochs: int) -> Trial:
    options = ["-f", "--config", f"searcher.max_length.epochs={epochs}"]
    said = cluster.det("e", "create", config, ".", *options, cwd=TRIAL, timeout=150).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    (trial,) = client.get_experiment(int(found[1])).list_trials()
    return trial


def reported(trial: Trial, group: str) -> list[int]:
    return [report.steps_completed for report in trial.iter_metrics(group)]


def test_a_trial_class_trains_as_its_config_says(cluster: EmbeddedCluster, client: Determined) -> None:
    trial = finished_trial(cluster, client, "const.yaml", 4)
    assert reported(trial, "validation") == [BATCHES_PER_EPOCH * epoch for epoch in range(1, 5)]
    assert reported(trial, "training")[:3] == [10, 20, 23]
    validation = list(trial.iter_metrics("validation"))
    assert max(report.metrics["accuracy"] for report in validation) >= 0.9
    (checkpoint, *_) = trial.list_checkpoints()
    assert "state_dict.pth" in checkpoint.resources
