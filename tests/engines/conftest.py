"""The engines' own daemons, each started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.kubernetes import KubernetesCluster, running_kubernetes
from support.slurm import SlurmCluster, running_slurm


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """A Slurm of four nodes."""
    with running_slurm() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[KubernetesCluster]:
    """A Kubernetes of one node."""
    with running_kubernetes() as cluster:
        yield cluster
