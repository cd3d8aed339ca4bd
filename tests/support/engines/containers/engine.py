"""The engine of containers on a real Podman or Docker, as its tests open it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from support.clusters.control_plane import ControlPlane, control_plane
from support.engines.containers.image import IMAGE
from support.engines.containers.service import ContainerService
from support.engines.session import spec_of

from resolute_engines.container.client import DockerApi
from resolute_engines.container.runtime import make_runtime, runtime_name
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import AllocationSpec, Engine
from resolute_engines.settings import EngineSettings, PoolSettings

CLUSTER = f"{os.getpid():08x}-cluster"


def environment(folder: Path) -> EngineEnvironment:
    """A cluster of this process, which sends what is left to where it was."""
    return EngineEnvironment(
        cluster_id=CLUSTER,
        address="",
        tls=None,
        outage_timeout=3600.0,
        log_wait=1.0,
        runs_directory=folder / "runs",
        slots=None,
        nodes=1,
    )


class ContainerUnderTest:
    """Containers of Podman or Docker.

    Args:
        service: What serves.
        folder: Where the runtime lies.
        options: More settings of the engine.
    """

    def __init__(
        self, service: ContainerService, folder: Path, *, options: Mapping[str, Any] | None = None
    ) -> None:
        self.service = service
        self.folder = folder
        """Where the runtime lies."""
        self._options = options or {}
        self._runtime = folder / runtime_name()
        make_runtime(self._runtime)

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """One on a bridge of this machine."""
        return control_plane(script, host=self.service.host, **changes)

    @property
    def call(self) -> Callable[..., Any]:
        """The method by which it talks to the engine."""
        return DockerApi._bytes

    def open(self, **pool: Any) -> Engine:
        """Two slots."""
        return create_engine(*self._settings(pool))

    @property
    def opened_by(self) -> tuple[EngineSettings, EngineEnvironment]:
        """Its settings, and its cluster."""
        return self._settings({})

    def _settings(self, pool: dict[str, Any]) -> tuple[EngineSettings, EngineEnvironment]:
        settings = EngineSettings(
            name="containers",
            type="container",
            options={
                "url": self.service.url,
                "runtime": str(self._runtime),
                "image_timeout": 0,
                **self._options,
            },
            pools=(
                PoolSettings(
                    name="boxes", options={"slots": 2, "image": IMAGE, **pool}, where="resource_pools[0]"
                ),
            ),
        )
        return settings, environment(self.folder)

    def spec(
        self, plane: ControlPlane, *, containers: int = 1, config: dict[str, Any] | None = None, **more: Any
    ) -> AllocationSpec:
        """One slot for each container."""
        return spec_of(plane, pool="boxes", containers=containers, config=config or {}, **more)

    async def lose(self, allocation_id: str) -> None:
        """Kills the containers from outside."""
        # Other runs of the tests, on the same engine, have an allocation of this name too.
        labels = (f"label=resolute.cluster={CLUSTER}", f"label=resolute.allocation={allocation_id}")
        filters = [word for label in labels for word in ("--filter", label)]
        for name in self.service.run("ps", "--quiet", *filters).split():
            self.service.run("kill", "--signal", "KILL", name)

    async def resources(self) -> Sequence[str]:
        """Containers, volumes and networks with the cluster's label."""
        label = f"label=resolute.cluster={CLUSTER}"
        commands = (
            ("ps", "--all", "--quiet"),
            ("volume", "ls", "--quiet"),
            ("network", "ls", "--quiet"),
        )
        return [
            name for command in commands for name in self.service.run(*command, "--filter", label).split()
        ]
