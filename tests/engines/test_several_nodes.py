"""Trainings whose ranks are on several nodes of an engine, with its own daemons."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from support.clusters.distributed import DistributedTrial
from support.clusters.embedded import EmbeddedCluster, embedded
from support.engines.podman import IMAGE, PodmanService, podman_service
from support.engines.several_nodes import SECONDS, stops_goes_on_and_survives, submitted
from support.ports import free_port
from support.slurm import SlurmCluster
from support.waiting import wait_until

from resolute_experiments.resources.settings import FILE_NAME

SLURM = """
resource_pools: [{{pool_name: nodes, engine: hpc, slot_type: cpu, slots_per_node: 1}}]
engines: {{hpc: {{type: slurm, directory: {directory}, conf: {conf}}}}}
"""

PODMAN = """
resource_pools: [{{pool_name: nodes, engine: podman, slots: 2, slots_per_node: 1, image: "{image}"}}]
engines:
  podman:
    type: container
    url: {url}
    services_address: {address}
    services_certificate: {certificate}
    bind_mounts: [{packages}]
"""
PACKAGES = Path(torch.__file__).parents[1]
"""Has torch, which the image has not; Resolute is not in it."""
IN_IMAGE = "/usr/local/lib/python{}.{}/dist-packages".format(*sys.version_info)
"""Where Debian's Python finds what it did not install."""

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


@contextmanager
def on_podman(podman: PodmanService, folder: Path) -> Iterator[EmbeddedCluster]:
    """A cluster whose only pool is of containers with one slot each, and its directory of checkpoints."""
    home, storage, port = folder / "home", folder / "storage", free_port()
    home.mkdir(mode=0o700)
    storage.mkdir()
    # A trial is another user in its containers.
    storage.chmod(0o777)
    told = PODMAN.format(
        image=IMAGE,
        url=podman.url,
        address=f"{podman.host}:{port}",
        certificate=home / "data/tls/certificate.pem",
        packages=PACKAGES,
    )
    (home / FILE_NAME).write_text(told)
    cluster = EmbeddedCluster(home, environment={"RESOLUTE_CHECKPOINTS_ROOTS": str(storage)})
    remote = ("--host", podman.host, "--remote-port", str(port), "--tls-self-signed")
    cluster.run("resolute", "up", "--detach", "--no-http", *remote, timeout=SECONDS)
    try:
        yield cluster
    finally:
        cluster.down()


def left_of(trial: DistributedTrial, podman: PodmanService) -> list[str]:
    """The containers of a trial's runs."""
    (described,) = trial.cluster.json("t", "describe", str(trial.trial.id))
    labels = [f"label=resolute.allocation={run['allocation_id']}" for run in described["trial"]["runs"]]
    listed = [podman.podman.run("ps", "--all", "--quiet", "--filter", label) for label in labels]
    return [name for names in listed for name in names.split()]


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


@pytest.mark.parametrize("victim", [0, 1])
def test_ranks_in_two_containers(tmp_path: Path, victim: int) -> None:
    mounted = {"host_path": str(PACKAGES), "container_path": IN_IMAGE, "read_only": True}
    with podman_service(tmp_path) as podman, podman.serving(), on_podman(podman, tmp_path) as cluster:
        settings = (
            "checkpoint_storage.type=shared_fs",
            f"checkpoint_storage.host_path={tmp_path / 'storage'}",
            f"bind_mounts={json.dumps([mounted])}",
        )

        def kill(node: str) -> None:
            # Its host name is its name, without dots.
            names = podman.podman.run("ps", "--format", "{{.Names}}").split()
            (name,) = (one for one in names if one.replace(".", "-").endswith(node))
            podman.podman.run("kill", "--signal", "KILL", name)

        with submitted(cluster, *settings) as trial:
            stops_goes_on_and_survives(trial, kill, victim=victim)
            wait_until(lambda: not left_of(trial, podman), what="the removal", seconds=SECONDS, pause=1)
