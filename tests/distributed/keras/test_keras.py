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

ROOT = Path(__file__).parents[3]
INSTALLED = Path(sys.prefix) / "tensorflow"
PATHS = os.pathsep.join(filter(None, [str(INSTALLED), os.environ.get("PYTHONPATH")]))
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": PATHS}
WORKERS = DistributedScript(
    folder=Path(__file__).parent / "keras_workers", config="config.yaml", script="train.py"
)
EXAMPLE = DistributedScript(
    folder=ROOT / "examples" / "keras_iris", config="distributed.yaml", script="distributed.py"
)
BUSY = 300.0
"""Seconds that a trial may take where others train too."""


@pytest.fixture(scope="module", autouse=True)
def _tensorflow() -> None:
    if not (INSTALLED / "tensorflow").is_dir():
        missing("TensorFlow is not installed: `make distributed` installs it")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2, RESOLUTE_LOCAL_NODES="2", **QUIET) as running:
        yield running


def final_weights(trial: DistributedTrial) -> set[str]:
    """What the workers print at their end; a run that was paused printed its own before."""
    found = dict(re.findall(r"worker (\d) of 2 ends with (.*)", trial.log()))
    assert found.keys() == {"0", "1"}
    return set(found.values())


def test_two_workers_that_were_paused_end_as_if_they_had_not_been(submit: Submit) -> None:
    trial = submit(WORKERS, "hyperparameters.waits=true")
    # Its epochs have three batches, and at the end of the second it waits until it is to stop.
    trial.wait_for_step(3, timeout=BUSY)
    trial.experiment.pause()
    trial.wait_for(ExperimentState.PAUSED, timeout=BUSY)
    assert max(trial.reported("training")) in {3, 6}
    trial.experiment.activate()
    trial.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    assert trial.reported("training") == [3, 6, 9, 12]

    straight = submit(WORKERS)
    straight.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    assert len(final_weights(trial) | final_weights(straight)) == 1


def test_the_example_of_two_workers_trains(submit: Submit) -> None:
    example = submit(
        EXAMPLE, "entrypoint=python3 -m determined.launch.tensorflow -- python3 distributed.py --epochs 2"
    )
    example.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
    assert example.reported("training") == [3, 6]
    assert len(final_weights(example)) == 1


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
