"""The contract of engines, kept by a real Ray of two nodes; and what is Ray's own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import ControlPlane, control_plane
from support.engines.contract import (
    ALLOCATION,
    SECONDS,
    TRAIN,
    EngineContract,
    cleared,
    life,
    scenario,
    seen,
    until,
)
from support.engines.submissions import Submissions
from support.ray import CPUS, RayCluster
from support.waiting import wait_until_async

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.errors import UnavailableError
from resolute_experiments.resources.engine_environment import EngineEnvironment
from resolute_experiments.resources.protocol import (
    AllocationSpec,
    CapacityChange,
    ContainerState,
    Placement,
)
from resolute_experiments.resources.ray.calls import Driver
from resolute_experiments.resources.ray.manager import RayResourceManager, SupervisorTerms
from resolute_experiments.resources.ray.settings import RayPool
from resolute_experiments.resources.settings import EngineSettings, PoolSettings


class RayEngine:
    """Allocations of one test, whose names no other test uses."""

    call = "resolute_experiments.resources.ray.calls:Driver.call"

    def __init__(self, ray: RayCluster, directory: Path, **pool: Any) -> None:
        directory.mkdir(exist_ok=True)
        self._ray = ray
        self.directory = directory
        self.python = sys.executable
        self._pool = RayPool.model_validate({"slot_type": "cpu", "slots_per_node": 1, **pool})
        self._cluster_id = uuid.uuid4().hex

    @property
    def opened_by(self) -> tuple[EngineSettings, EngineEnvironment]:
        """What opens the same."""
        options = {"address": self._ray.address, "directory": str(self.directory), "python": self.python}
        pool = PoolSettings(
            name="batch", options=self._pool.model_dump(exclude_unset=True), where="resource_pools[0]"
        )
        environment = EngineEnvironment(
            cluster_id=self._cluster_id,
            address="",
            tls=None,
            outage_timeout=3600.0,
            log_wait=1.0,
            runs_directory=self.directory,
            slots=None,
            nodes=1,
        )
        return EngineSettings(name="ray", type="ray", options=options, pools=(pool,)), environment

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """One on the loopback interface, which the nodes are too."""
        return control_plane(script, **changes)

    def driver(self, **changes: Any) -> Driver:
        """Asks the cluster."""
        return Driver(self._ray.address, prefix=f"resolute-{self._cluster_id[:8]}-", **changes)

    def open(self) -> RayResourceManager:
        """A pool of both nodes."""
        return RayResourceManager(
            self.driver(),
            pools={"batch": self._pool},
            terms=SupervisorTerms(
                python=self.python,
                directory=str(self.directory),
                tls=None,
                outage_timeout=3600.0,
                log_wait=1.0,
            ),
            poll_seconds=0.2,
        )

    def spec(self, plane: ControlPlane, *, containers: int = 1, slots: int = 1) -> AllocationSpec:
        """Some slots for each container."""
        return AllocationSpec(
            allocation_id=plane.spec.allocation_id,
            placements=tuple(tuple(range(rank * slots, (rank + 1) * slots)) for rank in range(containers)),
            address=plane.address,
            token="token-0",
            pool="batch",
        )

    async def lose(self, allocation_id: str) -> None:
        """Kills the supervisors alone."""
        for folder in self.directory.iterdir():
            supervisor = ProcessIdentity.from_json(read_json(RunDirectory(folder / "run").supervisor_file))
            assert supervisor is not None
            assert supervisor.send(signal.SIGKILL)

    async def remains(self) -> Sequence[str]:
        """The folders on the nodes, and what Ray has."""
        driver = self.driver()
        try:
            return [*(folder.name for folder in self.directory.iterdir()), *await driver.call("names")]
        finally:
            await driver.close()


class TestRay(EngineContract, Submissions):
    """A Ray of two nodes."""

    calls = 1

    @pytest.fixture
    def engine(self, ray: RayCluster, tmp_path: Path) -> RayEngine:
        """Its run directories."""
        return RayEngine(ray, tmp_path / "runs")
