"""The engine of Pods on a real Kubernetes, as its tests open it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from support.clusters.control_plane import ControlPlane, control_plane
from support.daemons.kubernetes import KubernetesCluster
from support.engines.session import spec_of

from resolute_engines.environment import EngineEnvironment
from resolute_engines.kubernetes.connection import KubernetesApi
from resolute_engines.kubernetes.pods import CONTAINER
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import AllocationSpec, Engine
from resolute_engines.settings import EngineSettings, PoolSettings


class KubernetesUnderTest:
    """Pods of one test's cluster, which run this installation on the machine's own programs."""

    def __init__(
        self, kubernetes: KubernetesCluster, folder: Path, *, pool: dict[str, Any], **options: Any
    ) -> None:
        self.kubernetes = kubernetes
        self._folder = folder
        self.pool = pool
        self.options = options
        self.cluster = f"{uuid.uuid4().hex[:12]}"

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """One at the address of the node."""
        return control_plane(script, host=self.kubernetes.host, **changes)

    @property
    def call(self) -> Callable[..., Any]:
        """The method by which it talks to the engine."""
        return KubernetesApi._answer

    def open(self) -> Engine:
        """A pool of processors."""
        return create_engine(*self.opened_by)

    @property
    def opened_by(self) -> tuple[EngineSettings, EngineEnvironment]:
        """Its settings, and a cluster of its own."""
        settings = EngineSettings(
            name="kube",
            type="kubernetes",
            options={**self.kubernetes.engine_options, **self.options},
            pools=(
                PoolSettings(
                    name="pods",
                    options={**self.kubernetes.pool_options, **self.pool},
                    where="resource_pools[0]",
                ),
            ),
        )
        environment = EngineEnvironment(
            cluster_id=self.cluster,
            address="",
            tls=None,
            outage_timeout=3600.0,
            log_wait=1.0,
            runs_directory=self._folder / "runs",
            slots=None,
            nodes=1,
        )
        return settings, environment

    def spec(
        self, plane: ControlPlane, *, containers: int = 1, config: dict[str, Any] | None = None
    ) -> AllocationSpec:
        """One slot for each container."""
        return spec_of(plane, pool="pods", containers=containers, config=config or {})

    async def lose(self, allocation_id: str) -> None:
        """Kills the first processes of the trial's containers."""
        for pod in await self.objects("pods", f"resolute/allocation={allocation_id}"):
            statuses = {each["name"]: each for each in pod["status"]["containerStatuses"]}
            self.kubernetes.kill_container(statuses[CONTAINER]["containerID"])

    async def resources(self) -> Sequence[str]:
        """Everything with the cluster's label."""
        found = [await self.objects(kind) for kind in ("services", "secrets", "pods")]
        return [each["metadata"]["name"] for objects in found for each in objects]

    async def objects(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """What there is of a kind."""
        async with self._api() as api:
            labels = ",".join(filter(None, (f"resolute/cluster={self.cluster}", selector)))
            listed = await api.get(f"/api/v1/namespaces/default/{kind}", labelSelector=labels)
        return list(listed["items"])

    async def create(self, path: str, manifest: dict[str, Any]) -> None:
        """Creates something."""
        async with self._api() as api:
            await api.create(f"/api/v1/namespaces/default/{path}", manifest)

    async def delete(self, path: str, *, grace_seconds: int) -> None:
        """Deletes something."""
        async with self._api() as api:
            await api.delete(f"/api/v1/namespaces/default/{path}", {"gracePeriodSeconds": grace_seconds})

    @asynccontextmanager
    async def _api(self) -> AsyncIterator[KubernetesApi]:
        api = await KubernetesApi.connect(kubeconfig=self.kubernetes.kubeconfig)
        try:
            yield api
        finally:
            await api.close()
