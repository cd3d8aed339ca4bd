"""A training of two ranks on two nodes of a real Ray."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.daemons.ray import PYTHON, RayCluster, running_ray
from support.engines.nodes import Nodes
from support.engines.several_nodes import stops_goes_on_and_survives

from resolute_engines.settings import FILE_NAME

SETTINGS = """
resource_pools:
  - {{pool_name: nodes, engine: ray, slot_type: cpu, slots_per_node: 1, resources: {{worker: 1}}}}
engines:
  ray:
    type: ray
    address: "{address}"
    driver_python: {ray_python}
    python: {python}
    directory: {directory}
"""


@pytest.fixture(scope="module")
def ray() -> Iterator[RayCluster]:
    """A Ray of a head, where no rank runs, and two nodes, which the ranks know apart by their host names."""
    with running_ray(host_names=True) as cluster:
        cluster.start_worker("another")
        yield cluster


@contextmanager
def on_ray(ray: RayCluster, folder: Path) -> Iterator[EmbeddedCluster]:
    """A cluster whose only pool is the nodes beside the head."""
    home, directory = folder / "home", folder / "runs"
    home.mkdir(mode=0o700)
    directory.mkdir()
    told = SETTINGS.format(address=ray.address, ray_python=PYTHON, python=sys.executable, directory=directory)
    (home / FILE_NAME).write_text(told)
    with embedded(home) as cluster:
        yield cluster


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("victim", [0, 1])
def test_ranks_on_two_nodes_of_ray(ray: RayCluster, tmp_path: Path, victim: int) -> None:
    def kill(node: str) -> None:
        ray.kill(node)
        # There is no third one that could take its rank.
        ray.start_worker(node)

    with on_ray(ray, tmp_path) as cluster:
        nodes = Nodes(cluster=cluster, kill=kill)
        stops_goes_on_and_survives(nodes, "torch_distributed", victim=victim)
