"""Trainings whose ranks are on several nodes of an engine, with its own daemons."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.backends import need_module
from support.daemons.kubernetes import KubernetesCluster
from support.daemons.slurm import SlurmCluster
from support.engines.nodes import Nodes, nodes_of_kubernetes, nodes_of_podman, nodes_of_slurm
from support.engines.several_nodes import EXAMPLES, need_layer, stops_goes_on_and_survives

LAYERS = pytest.mark.parametrize("layer", EXAMPLES)
VICTIMS = pytest.mark.parametrize("victim", [0, 1])

pytestmark = [pytest.mark.timeout(3600), pytest.mark.sampled(2)]


@pytest.fixture(scope="module")
def slurm_nodes(slurm: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with nodes_of_slurm(slurm, tmp_path_factory.mktemp("slurm")) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with nodes_of_podman(tmp_path_factory.mktemp("podman")) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def pods(kubernetes: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    need_module("kubernetes_asyncio", remedy="`make engines` installs it")
    with nodes_of_kubernetes(kubernetes, tmp_path_factory.mktemp("kubernetes")) as nodes:
        yield nodes


@LAYERS
@VICTIMS
def test_ranks_on_two_nodes_of_slurm(slurm_nodes: Nodes, layer: str, victim: int) -> None:
    need_layer(layer)
    stops_goes_on_and_survives(slurm_nodes, layer, victim=victim)


@LAYERS
@VICTIMS
def test_ranks_in_two_containers(containers: Nodes, layer: str, victim: int) -> None:
    need_layer(layer)
    stops_goes_on_and_survives(containers, layer, victim=victim)


@LAYERS
@VICTIMS
def test_ranks_in_two_pods(pods: Nodes, layer: str, victim: int) -> None:
    need_layer(layer)
    stops_goes_on_and_survives(pods, layer, victim=victim)
