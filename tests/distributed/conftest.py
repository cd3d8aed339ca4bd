"""Every test here runs real distributed trainings, through a cluster of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.distributed import DistributedScript, DistributedTrial, Submit
from support.clusters.embedded import EmbeddedCluster

# DeepSpeed compiles on first use. What it made is good for one virtual environment, whose paths are in it:
# environments that shared a folder would build it again by turns, a minute or more each time.
os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(Path(sys.prefix) / "torch-extensions"))
# As in a shell where the environment is active: another release of ninja would throw away what was compiled.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
_OF_EACH_FILE = 1
"""Tests that run without ``--whole``, which takes half an hour."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.distributed)
            item.add_marker(pytest.mark.timeout(600))
            item.add_marker(pytest.mark.sampled(_OF_EACH_FILE, group=item.path.stem))


@pytest.fixture
def submit(cluster: EmbeddedCluster) -> Iterator[Submit]:
    """Submits scripts to the cluster of the test; what still runs at its end is killed."""
    trials = []
    with cluster.client() as client:

        def create(script: DistributedScript, *settings: str) -> DistributedTrial:
            trials.append(DistributedTrial.create(cluster, client, script, *settings))
            return trials[-1]

        yield create
        for trial in trials:
            trial.experiment.reload()
            if not trial.experiment.state.is_terminal:
                trial.experiment.kill()
