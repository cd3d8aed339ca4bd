"""The engines' own daemons, each started once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from support.kubernetes import KubernetesCluster, running_kubernetes
from support.ray import RayCluster, running_ray
from support.slurm import SlurmCluster, running_slurm

if TYPE_CHECKING:
    # It wants the library of Kubernetes, which other engines' tests do without.
    from support.engines.pod_groups import Place


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """A Slurm of four nodes."""
    with running_slurm() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ray() -> Iterator[RayCluster]:
    """A Ray of two nodes."""
    with running_ray() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[KubernetesCluster]:
    """A Kubernetes of one node."""
    with running_kubernetes() as cluster:
        yield cluster


@pytest.fixture
def place(kubernetes: KubernetesCluster) -> Iterator[Place]:
    """A fresh name on the Kubernetes, of which nothing is left after the test."""
    from support.engines.pod_groups import Place

    place = Place(kubernetes.kubeconfig, f"run-{uuid.uuid4().hex[:12]}")
    yield place
    place.remove()
