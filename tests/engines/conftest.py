"""The engines' own daemons, each started once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from support.daemons.kubernetes import KubernetesCluster, running_kubernetes
from support.daemons.ray import RayCluster, running_ray
from support.daemons.slurm import SlurmCluster, running_slurm
from support.engines.containers.docker import DockerService, running_docker
from support.engines.containers.engine import ContainerUnderTest
from support.engines.containers.podman import PodmanService, podman_service

if TYPE_CHECKING:
    # It wants the library of Kubernetes, which other engines' tests do without.
    from support.engines.pod_groups import Place


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodmanService]:
    """Podman, serving."""
    with podman_service(tmp_path_factory.mktemp("podman")) as service, service.serving():
        yield service


@pytest.fixture(scope="module")
def docker() -> Iterator[DockerService]:
    """Docker, serving."""
    with running_docker() as service:
        yield service


@pytest.fixture(scope="module")
def podman_engine(podman: PodmanService, tmp_path_factory: pytest.TempPathFactory) -> ContainerUnderTest:
    """The engine of Podman's containers, with one runtime for all tests."""
    return ContainerUnderTest(podman, tmp_path_factory.mktemp("podman-engine"))


@pytest.fixture(scope="module")
def docker_engine(docker: DockerService, tmp_path_factory: pytest.TempPathFactory) -> ContainerUnderTest:
    """The engine of Docker's containers, with one runtime for all tests."""
    return ContainerUnderTest(docker, tmp_path_factory.mktemp("docker-engine"))


@pytest.fixture(scope="module", params=["podman", "docker"])
def container_engine(request: pytest.FixtureRequest) -> ContainerUnderTest:
    """The engine of containers, of each."""
    engine: ContainerUnderTest = request.getfixturevalue(f"{request.param}_engine")
    return engine


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
