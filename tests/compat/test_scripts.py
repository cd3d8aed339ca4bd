"""Every script of `scripts/` runs to its end by `det e create`, as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.backends import missing
from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.client import ExperimentState

from .conftest import TENSORFLOW

SCRIPTS = Path(__file__).parent / "scripts"
LAUNCHED = {
    "dsat": "deepspeed",
    "deepspeed_trial": "deepspeed",
    "deepspeed_trainer": "deepspeed",
    "horovod_core": "horovod",
    "keras_tensorflow": "tensorflow",
}
"""Scripts of what only `make distributed` installs."""
NAMES = sorted(each.name for each in SCRIPTS.iterdir() if (each / "config.yaml").is_file())


def run(cluster: EmbeddedCluster, name: str) -> None:
    said = cluster.det("e", "create", "config.yaml", ".", cwd=SCRIPTS / name).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found, said
    with cluster.client() as client:
        experiment = client.get_experiment(int(found[1]))

        def ended() -> bool:
            experiment.reload()
            return experiment.state.is_terminal

        wait_until(ended, what=f"{name} to end", seconds=300)
        logs = "".join(line for trial in experiment.list_trials() for line in trial.iter_logs())
        assert experiment.state is ExperimentState.COMPLETED, logs


def test_there_are_thirty_scripts() -> None:
    assert len(NAMES) == 30


@pytest.mark.e2e
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in LAUNCHED])
def test_script_of_a_user(cluster: EmbeddedCluster, name: str) -> None:
    run(cluster, name)


@pytest.mark.distributed
@pytest.mark.parametrize("name", sorted(LAUNCHED))
def test_script_of_a_user_under_another_launcher(cluster: EmbeddedCluster, name: str) -> None:
    run(cluster, name)
