"""The digits example on a real cluster: trains well, and a pause during training costs nothing but time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.client import Client, ExperimentState, Trial
from resolute_embedded import demo

EXAMPLES = Path(__file__).parents[3] / "examples"
DIGITS = EXAMPLES / "digits"
BATCHES_PER_EPOCH = 23


@pytest.fixture
def client(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    cluster.name_in(monkeypatch)
    with Client() as connected:
        yield connected


def create(cluster: EmbeddedCluster, *options: str, config: str = "const.yaml") -> int:
    said = cluster.det("e", "create", config, ".", *options, cwd=DIGITS, timeout=120).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    return int(found[1])


def reported(trial: Trial, group: str) -> list[int]:
    return [report.steps_completed for report in trial.iter_metrics(group)]


@pytest.mark.sampled(1, group="trainings at length")
def test_const_trains_well_and_the_best_validation_has_its_checkpoint(
    cluster: EmbeddedCluster, client: Client
) -> None:
    experiment = client.get_experiment(create(cluster, "-f"))
    (trial,) = experiment.list_trials()
    assert reported(trial, "validation") == [BATCHES_PER_EPOCH * epoch for epoch in range(1, 17)]
    best = max(report.metrics["accuracy"] for report in trial.iter_metrics("validation"))
    assert best >= 0.95
    (validation,) = experiment.top_checkpoint().get_metrics("validation")
    assert validation.metrics["accuracy"] == best


@pytest.mark.sampled(1, group="trials without their cluster")
def test_a_trial_runs_again_without_its_cluster_to_the_same_bits(
    cluster: EmbeddedCluster, client: Client, tmp_path: Path
) -> None:
    # Other hyperparameters, length and seed than those that the script has without a cluster.
    options = ("--config", "searcher.max_length.epochs=2", "--config", "hyperparameters.hidden=48")
    (trial,) = client.get_experiment(create(cluster, "-f", *options)).list_trials()
    phases = cluster.json("trace", f"{trial.id}.1")["phases"]
    names = [phase["name"] for phase in phases]
    assert names[:3] == ["submit", "queue", "start"]
    assert {"first report", "train", "checkpoint", "end"} < set(names)
    # Its phase may be missing: the cluster can hear late that the processes run.
    (described,) = cluster.json("trial", "describe", str(trial.id))
    assert described["trial"]["runs"][0]["initialize_time"]
    again = cluster.run("resolute", "reproduce", str(trial.id), "--run", cwd=tmp_path, timeout=300)
    assert f"have equal weights after {2 * BATCHES_PER_EPOCH} steps" in again.stdout
    assert "warning" not in again.stderr
    written = tmp_path / f"reproduction-{trial.id}"
    assert "torch==" in (written / "requirements.lock").read_text()
    assert (written / "code" / "train.py").read_bytes() == (DIGITS / "train.py").read_bytes()

    refused = cluster.run("resolute", "reproduce", str(trial.id), "--run", cwd=tmp_path, check=False)
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr


@pytest.mark.sampled(1, group="trainings at length")
def test_a_pause_in_mid_training_checkpoints_and_frees_the_slot_and_activate_goes_on(
    cluster: EmbeddedCluster, client: Client
) -> None:
    epochs = 25
    number = create(cluster, "--config", f"searcher.max_length.epochs={epochs}")
    experiment = client.get_experiment(number)
    trial = experiment.await_first_trial()
    wait_until(lambda: reported(trial, "validation"), what="the first validation")

    cluster.det("e", "pause", str(number))
    wait_until(
        lambda: all(slot["trial"] is None for slot in cluster.json("status")["slots"]),
        what="the slot",
        pause=0.3,
    )
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


def test_the_demo_follows_a_search_ranks_its_trials_and_fetches_the_best(
    cluster: EmbeddedCluster,
    client: Client,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shorter = ("--config", "searcher.max_trials=4", "--config", "searcher.max_length.epochs=4")
    experiment = client.get_experiment(create(cluster, *shorter, config="adaptive.yaml"))
    demo.follow(experiment)
    code = demo.report(experiment, tmp_path)
    said = capsys.readouterr().out
    assert "4 of 4 done; best accuracy 0." in said
    assert "The best 4 of 4 trials" in said
    best = demo.standings_of(experiment)[0]
    assert f"Best: trial {best.trial.id} with a validation accuracy of {best.best:.4f}" in said
    assert best.best is not None
    assert code == (0 if best.best >= 0.95 else 1)
    assert (tmp_path / "best" / "model.pt").is_file()
