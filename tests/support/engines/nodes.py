"""A cluster whose only pool has two nodes of a real engine, each of which a test can end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from support.clusters.embedded import EmbeddedCluster, embedded
from support.daemons.kubernetes import KubernetesCluster
from support.daemons.slurm import SlurmCluster
from support.engines.containers.image import IMAGE
from support.engines.containers.podman import podman_service
from support.ports import free_port
from support.waiting import wait_until

from resolute_engines.container.request import CLUSTER
from resolute_engines.settings import FILE_NAME

SECONDS = 600.0
"""How long anything may take where others train too."""
PACKAGES = Path(torch.__file__).parents[1]
"""Has the frameworks, which the image has not; Resolute is not in it."""
IN_IMAGE = "/usr/local/lib/python{}.{}/dist-packages".format(*sys.version_info)
"""Where Debian's Python finds what it did not install."""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """Two nodes, and the cluster that trains on them."""

    cluster: EmbeddedCluster
    kill: Callable[[str], None]
    """Ends a node with all that runs on it, by the name that ranks there know it by."""
    recover: Callable[[], None] = lambda: None
    """Has the nodes again that were ended, and waits until nothing of any run is left, for the next."""
    settings: tuple[str, ...] = ()
    """What the config of a trial wants for them."""


@contextmanager
def nodes_of_slurm(slurm: SlurmCluster, folder: Path) -> Iterator[Nodes]:
    """Nodes of a Slurm."""
    home, killed = folder / "home", list[str]()
    engine = {
        "type": "slurm",
        "directory": str(folder / "shared"),
        "conf": slurm.environment["SLURM_CONF"],
    }
    _write(home, engine, {"slot_type": "cpu", "slots_per_node": 1})

    def kill(node: str) -> None:
        killed.append(node)
        slurm.kill(node)

    def recover() -> None:
        while killed:
            slurm.start_node(int(killed.pop().removeprefix("node")))
        wait_until(slurm.all_idle, what="Slurm's nodes", seconds=SECONDS, pause=0.5)

    with embedded(home, PATH=slurm.environment["PATH"]) as cluster:
        yield Nodes(cluster=cluster, kill=kill, recover=recover)


@contextmanager
def nodes_of_podman(folder: Path) -> Iterator[Nodes]:
    """Containers of a Podman with one slot each."""
    mounted = {"host_path": str(PACKAGES), "container_path": IN_IMAGE, "read_only": True}
    with podman_service(folder) as service, service.serving():
        podman = service.podman

        def names() -> list[str]:
            # Other tests of this machine may have some.
            own = json.loads((folder / "home/cluster.json").read_text())["cluster_id"]
            label = ("--all", "--filter", f"label={CLUSTER}={own}")
            return podman.run("ps", *label, "--format", "{{.Names}}").split()

        def gone() -> bool:
            return not names()

        def kill(node: str) -> None:
            # Its host name is its name, without dots.
            (name,) = (one for one in names() if one.replace(".", "-").endswith(node))
            podman.run("kill", "--signal", "KILL", name)

        engine = {
            "type": "container",
            "url": service.url,
            "bind_mounts": [str(PACKAGES)],
            "checkpoint_directories": [str(folder / "storage")],
        }
        pool = {"slots": 2, "slots_per_node": 1, "image": IMAGE}
        with _remote(folder, service.host, engine, pool) as cluster:
            yield Nodes(
                cluster=cluster,
                kill=kill,
                recover=lambda: _await(gone),
                settings=(*_stored(folder), f"bind_mounts={json.dumps([mounted])}"),
            )


@contextmanager
def nodes_of_kubernetes(kubernetes: KubernetesCluster, folder: Path) -> Iterator[Nodes]:
    """Pods with one slot each."""
    storage = str(folder / "storage")
    mounts = [{"name": "store", "mountPath": storage}]
    spec = {
        "containers": [{"name": "determined-container", "volumeMounts": mounts}],
        "volumes": [{"name": "store", "hostPath": {"path": storage}}],
    }

    def kill(node: str) -> None:
        # Within their group Pods are rank-0 and rank-1. Those of earlier runs may be about to be removed.
        number = node.removeprefix("rank-")
        (name,) = (one for one in kubernetes.running_pods() if one.endswith(f"-{number}"))
        kubernetes.kill_pod(name)

    engine = {"type": "kubernetes", **kubernetes.engine_options}
    with _remote(folder, kubernetes.host, engine, kubernetes.pool_options) as cluster:
        yield Nodes(
            cluster=cluster,
            kill=kill,
            recover=lambda: _await(lambda: not kubernetes.pods()),
            settings=(*_stored(folder), f"environment.pod_spec={json.dumps({'spec': spec})}"),
        )


@contextmanager
def _remote(
    folder: Path, host: str, engine: dict[str, Any], pool: dict[str, Any]
) -> Iterator[EmbeddedCluster]:
    """A cluster that trials reach from elsewhere, by TLS, and its directory of checkpoints."""
    home, storage, port = folder / "home", folder / "storage", free_port()
    storage.mkdir()
    # A trial may be another user.
    storage.chmod(0o777)
    reached = {
        "services_address": f"{host}:{port}",
        "services_certificate": str(home / "data/tls/certificate.pem"),
    }
    _write(home, {**engine, **reached}, pool)
    cluster = EmbeddedCluster(home, environment={"RESOLUTE_CHECKPOINTS_ROOTS": str(storage)})
    remote = ("--host", host, "--remote-port", str(port), "--tls-self-signed")
    cluster.run("resolute", "up", "--detach", "--no-http", *remote, timeout=SECONDS)
    try:
        yield cluster
    finally:
        cluster.down()


def _await(gone: Callable[[], bool]) -> None:
    wait_until(gone, what="the removal of every run", seconds=SECONDS, pause=1)


def _stored(folder: Path) -> tuple[str, ...]:
    return ("checkpoint_storage.type=shared_fs", f"checkpoint_storage.host_path={folder / 'storage'}")


def _write(home: Path, engine: dict[str, Any], pool: dict[str, Any]) -> None:
    """Writes the settings of a cluster with one pool."""
    home.mkdir(mode=0o700)
    pools = [{"pool_name": "nodes", "engine": "engine", **pool}]
    # JSON is YAML.
    (home / FILE_NAME).write_text(json.dumps({"resource_pools": pools, "engines": {"engine": engine}}))
