"""Keras on TensorFlow: two workers on two nodes, and an exact resume of one by Keras 3."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.backends import missing
from support.clusters.distributed import DistributedScript, DistributedTrial, Submit
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import ExperimentState

ROOT = Path(__file__).parents[2]
INSTALLED = Path(sys.prefix) / "tensorflow"
if not (INSTALLED / "tensorflow").is_dir():
    missing("TensorFlow is not installed: `make distributed` installs it")
PATHS = os.pathsep.join(filter(None, [str(INSTALLED), os.environ.get("PYTHONPATH")]))
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": PATHS}
WORKERS = DistributedScript(
    folder=ROOT / "examples" / "keras_iris", config="distributed.yaml", script="distributed.py"
)
BUSY = 240.0
"""Seconds that a trial may take where others train too."""
LONG = "entrypoint=python3 -m determined.launch.tensorflow -- python3 distributed.py --epochs 200"
SEED = "reproducibility.experiment_seed=7"
STEPS = 200 * 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2, RESOLUTE_LOCAL_NODES="2", **QUIET) as running:
        yield running


def final_weights(trial: DistributedTrial) -> set[str]:
    """What the workers print at their end."""
    found = dict(re.findall(r"worker (\d) of 2 ends with (.*)", trial.log()))
    assert found.keys() == {"0", "1"}
    return set(found.values())


def test_two_workers_stop_after_one_epoch_and_continue_as_if_they_had_not(submit: Submit) -> None:
    trial = submit(WORKERS, LONG, SEED)
    trial.wait_for_step(30, timeout=BUSY)
    trial.experiment.pause()
    trial.wait_for(ExperimentState.PAUSED, timeout=BUSY)
    stopped = max(trial.reported("training"))
    assert stopped < STEPS
    trial.experiment.activate()
    trial.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    assert sorted(trial.reported("training")) == list(range(3, STEPS + 1, 3))

    straight = submit(WORKERS, LONG, SEED)
    straight.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    assert len(final_weights(trial) | final_weights(straight)) == 1


def test_keras_3_resumes_exactly_on_tensorflow(tmp_path: Path) -> None:
    script = Path(__file__).with_name("keras_on_tensorflow.py")
    paths = os.pathsep.join([str(ROOT / "tests"), PATHS])
    environment = {**os.environ, **QUIET, "PYTHONPATH": paths, "KERAS_BACKEND": "tensorflow"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "tensorflow: the same"
