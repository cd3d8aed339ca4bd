"""The engine ``kubernetes``: Pods of a real Kubernetes, whose daemons are its API server and its kubelet."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.harness.cluster_processes import Role
from faults.harness.engines.engine import Kill, Place
from support.daemons.kubernetes import KubernetesCluster, running_kubernetes

from resolute_engines.kubernetes.pods import CONTAINER
from resolute_engines.kubernetes.request import ALLOCATION_LABEL

_AWAY_SECONDS = (0.0, 20.0)
"""How long a daemon or the node is away: shorter and longer than Kubernetes' patience with a node, 12 s."""
_ENDED = ("Succeeded", "Failed")
"""Phases of Pods that have sent all that they will."""


class KubernetesEngine:
    """Kubernetes, of which each part is killed and started again.

    Args:
        kubernetes: It; it is up.
        dice: Decides how long something is away.
    """

    variables: Mapping[str, str] = {}
    cpus_per_slot = 0.4
    """Four runs at once shall fit a machine of two processors, what sends their lines included."""

    def __init__(self, kubernetes: KubernetesCluster, *, dice: random.Random) -> None:
        self.kubernetes = kubernetes
        self._dice = dice
        self.fallen: set[str] = set()
        """A Pod that falls with its node is not started again, and its volume goes with it."""

    @property
    def host(self) -> str:
        """The node's address."""
        return self.kubernetes.host

    def away(self) -> AbstractContextManager[None]:
        """No API server, neither for us nor for the node."""
        return self.kubernetes.killed_api_server()

    def settings(self, place: Place) -> Mapping[str, Any]:
        """One pool, whose Pods run this installation."""
        engine = {
            **self.kubernetes.engine_options,
            "type": "kubernetes",
            "services_address": f"{self.host}:{place.port}",
            "services_certificate": str(place.certificate),
        }
        options = {
            **self.kubernetes.pool_options,
            "cpus_per_slot": self.cpus_per_slot,
            "allowed_pod_spec": ["spec.volumes.hostPath"],
        }
        return {
            "resource_pools": [{"pool_name": "pods", "engine": "kube", **options}],
            "engines": {"kube": engine},
        }

    def config(self, place: Place) -> Mapping[str, Any]:
        """The evidence and the checkpoints, mounted at their own paths."""
        paths = {"evidence": str(place.evidence), "checkpoints": str(place.checkpoints)}
        mounts = [{"name": name, "mountPath": path} for name, path in paths.items()]
        spec = {
            "containers": [{"name": CONTAINER, "volumeMounts": mounts}],
            "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in paths.items()],
        }
        return {
            "environment": {"pod_spec": {"spec": spec}},
            "checkpoint_storage": {"type": "shared_fs", "host_path": paths["checkpoints"]},
        }

    def victims(self, home: Path) -> Mapping[Role, Sequence[Kill]]:
        """Containers of trials, either daemon, and the node with all its containers."""
        return {
            Role.SUPERVISOR: [partial(self._kill, container) for container in self._running()],
            Role.ENGINE_DAEMON: [self._restart_api_server, self._restart_kubelet],
            Role.NODE: [self._restart_node],
        }

    def left_over(self, home: Path) -> Sequence[str]:
        """Pods; what else a group has goes with them."""
        return [f"Pod {name} is still there" for name in self.kubernetes.pods()]

    def _running(self) -> list[str]:
        """The trials' containers; none while nobody can say."""
        statuses = [
            each
            for pod in self._pods() or ()
            for each in pod.get("status", {}).get("containerStatuses") or ()
        ]
        return [
            each["containerID"]
            for each in statuses
            if each["name"] == CONTAINER and "running" in each["state"]
        ]

    def _pods(self) -> list[dict[str, Any]] | None:
        """All Pods; None if nobody can say."""
        try:
            found: list[dict[str, Any]] = self.kubernetes.call("/api/v1/namespaces/default/pods")["items"]
        except OSError:
            return None
        return found

    def _kill(self, container: str) -> bool:
        try:
            self.kubernetes.kill_container(container)
        except subprocess.CalledProcessError:
            return False  # It has ended meanwhile.
        return True

    def _restart_api_server(self) -> bool:
        with self.kubernetes.killed_api_server():
            time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        return True

    def _restart_kubelet(self) -> bool:
        self.kubernetes.kill_kubelet()
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.kubernetes.start_kubelet()
        return True

    def _restart_node(self) -> bool:
        pods = self._pods()
        if pods is None:
            return False
        self.kubernetes.kill_kubelet()
        self.kubernetes.kill_all_containers()
        self.fallen |= {
            pod["metadata"]["labels"][ALLOCATION_LABEL]
            for pod in pods
            if pod["status"]["phase"] not in _ENDED
        }
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.kubernetes.start_kubelet()
        return True


@contextmanager
def attacked_kubernetes(*, dice: random.Random) -> Iterator[KubernetesEngine]:
    """A Kubernetes of its own until the block ends; skips where none is given."""
    with running_kubernetes() as kubernetes:
        yield KubernetesEngine(kubernetes, dice=dice)
