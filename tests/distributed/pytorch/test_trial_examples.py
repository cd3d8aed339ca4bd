"""Examples of trainings in PyTorch on two slots through the platform."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.distributed import DistributedScript, Submit
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import ExperimentState

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SCRIPTS = EXAMPLES / "pytorch_scripts"
LAYER = "python3 -m determined.launch.torch_distributed"
EPOCH = 23
"""Batches of an epoch of the scripts, of each rank; and of the example of Accelerate, of all ranks."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


def test_two_models_with_an_optimizer_each_train_on_two_slots(submit: Submit) -> None:
    gan = DistributedScript(folder=EXAMPLES / "gan", config="distributed.yaml", script="model_def:GanTrial")
    trial = submit(gan, "searcher.max_length.epochs=4", "min_validation_period.epochs=1")
    trial.wait_for(ExperimentState.COMPLETED)
    distances = [metrics["pixel_distance"] for metrics in trial.metrics("validation").values()]
    assert len(distances) == 4
    assert distances[-1] < distances[0]
    reports = trial.metrics("training").values()
    assert all(metrics.keys() >= {"critic_loss", "generator_loss"} for metrics in reports)
    assert "samples.pgm" in trial.trial.list_checkpoints()[0].resources
    assert trial.restarts == 0


@pytest.mark.parametrize("script", ["anywhere.py", "on_cluster.py"])
def test_a_script_for_clusters_trains_and_its_checkpoint_is_loaded(
    submit: Submit, cluster: EmbeddedCluster, script: str, tmp_path: Path
) -> None:
    trial = submit(
        DistributedScript(folder=SCRIPTS, config="det.yaml", script=script),
        f"entrypoint={LAYER} python3 {script}",
    )
    trial.wait_for(ExperimentState.COMPLETED)
    assert list(trial.metrics("validation")) == [20, EPOCH]
    said = loaded(cluster, trial.number, tmp_path)
    accuracy = trial.metrics("validation")[EPOCH]["accuracy"]
    assert re.fullmatch(rf"DigitsTrial of step {EPOCH}: {accuracy:.3f}\n", said), (said, accuracy)


def loaded(cluster: EmbeddedCluster, experiment: str, directory: Path) -> str:
    """What the script says that loads the best checkpoint of an experiment."""
    environment = {
        **os.environ,
        "RESOLUTE_HOME": str(cluster.home),
        "PYTHONPATH": str(EXAMPLES.parent / "compat"),
    }
    command = [sys.executable, str(SCRIPTS / "load.py"), experiment]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


ACCELERATE = DistributedScript(
    folder=EXAMPLES / "digits_accelerate", config="distributed.yaml", script="train.py"
)


def test_two_ranks_of_accelerate_compute_what_one_does_and_a_pause_changes_nothing(submit: Submit) -> None:
    length = "searcher.max_length.epochs=4"
    alone = submit(ACCELERATE, "searcher.max_length.epochs=1", "resources.slots_per_trial=1")
    alone.wait_for(ExperimentState.COMPLETED)
    paused = submit(ACCELERATE, length)
    paused.wait_for_step(30)
    paused.experiment.pause()
    paused.wait_for(ExperimentState.PAUSED)
    stopped = max(paused.metrics("training"))
    assert stopped < 4 * EPOCH
    paused.experiment.activate()
    paused.wait_for(ExperimentState.COMPLETED)
    whole = submit(ACCELERATE, length)
    whole.wait_for(ExperimentState.COMPLETED)
    for group in ("training", "validation"):
        assert paused.metrics(group) == whole.metrics(group)
    assert list(whole.metrics("validation")) == [EPOCH * epoch for epoch in range(1, 5)]
    # The last batch of an epoch is short, and is filled up for two ranks: so far they are equal.
    for step in (10, 20):
        losses = [trial.metrics("training")[step]["loss"] for trial in (whole, alone)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
