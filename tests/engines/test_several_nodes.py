"""Trainings whose ranks are on several nodes of an engine, with its own daemons."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.engines.several_nodes import SECONDS, stops_goes_on_and_survives, submitted
from support.slurm import SlurmCluster
from support.waiting import wait_until

from resolute_experiments.resources.settings import FILE_NAME

SLURM = """
resource_pools: [{{pool_name: nodes, engine: hpc, slot_type: cpu, slots_per_node: 1}}]
engines: {{hpc: {{type: slurm, directory: {directory}, conf: {conf}}}}}
"""

pytestmark = pytest.mark.timeout(900)


@contextmanager
def on_slurm(slurm: SlurmCluster, folder: Path) -> Iterator[EmbeddedCluster]:
    """A cluster whose only pool is a Slurm's."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    conf = slurm.environment["SLURM_CONF"]
    (home / FILE_NAME).write_text(SLURM.format(directory=folder / "shared", conf=conf))
    with embedded(home, PATH=slurm.environment["PATH"]) as cluster:
        yield cluster


@pytest.mark.parametrize("victim", [0, 1])
def test_ranks_on_two_nodes_of_slurm(slurm: SlurmCluster, tmp_path: Path, victim: int) -> None:
    killed: list[str] = []

    def kill(node: str) -> None:
        killed.append(node)
        slurm.kill(node)

    with on_slurm(slurm, tmp_path) as cluster, submitted(cluster) as trial:
        try:
            stops_goes_on_and_survives(trial, kill, victim=victim)
        finally:
            for node in killed:
                slurm.start_node(int(node.removeprefix("node")))
            wait_until(slurm.all_idle, what="Slurm's nodes", seconds=SECONDS, pause=0.5)
