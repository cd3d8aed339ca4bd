"""Slurm's engine, as its tests handle it."""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.clusters.control_plane import ControlPlane, control_plane
from support.daemons.slurm import SlurmCluster
from support.daemons.ssh import LoginServer
from support.engines.session import spec_of

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute_engines.environment import EngineEnvironment, SupervisorTerms
from resolute_engines.protocol import AllocationSpec
from resolute_engines.settings import EngineSettings, PoolSettings
from resolute_engines.slurm.client import SlurmClient
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.engine import SlurmEngine
from resolute_engines.slurm.factory import commands_of
from resolute_engines.slurm.request import SlurmNodes
from resolute_engines.slurm.settings import SlurmEngineOptions, SlurmPoolOptions


class SlurmUnderTest:
    """Jobs of one test, whose names no other test uses.

    Args:
        slurm: Has them.
        runs: Where run directories lie.
        login: Where Slurm's commands are run; None for this process.
        pool: Settings of the pool.
    """

    def __init__(
        self, slurm: SlurmCluster, runs: Path, *, login: LoginServer | None = None, **pool: Any
    ) -> None:
        self._runs = runs
        self._options = {"directory": str(runs), "conf": slurm.environment["SLURM_CONF"]}
        if login is not None:
            self._options |= {"login": "login", "ssh_config": str(login.config)}
        self._pool = SlurmPoolOptions.model_validate({"slot_type": "cpu", "slots_per_node": 1, **pool})
        engine = SlurmEngineOptions.model_validate(self._options)
        self._commands = replace(commands_of(engine, slurm.environment), deadline_seconds=60.0)
        self.python = sys.executable
        self._cluster_id = uuid.uuid4().hex
        self.cluster = f"resolute-{self._cluster_id[:8]}"
        """Begins the names of its jobs."""

    @property
    def call(self) -> Callable[..., Any]:
        """The method by which it talks to the engine."""
        return SlurmCommands.run

    @property
    def opened_by(self) -> tuple[EngineSettings, EngineEnvironment]:
        """What opens the same."""
        options = {**self._options, "python": self.python}
        pool = PoolSettings(
            name="batch", options=self._pool.model_dump(exclude_unset=True), where="resource_pools[0]"
        )
        environment = EngineEnvironment(
            cluster_id=self._cluster_id,
            address="",
            tls=None,
            outage_timeout=3600.0,
            log_wait=1.0,
            runs_directory=self._runs,
            slots=None,
            nodes=1,
        )
        return EngineSettings(name="hpc", type="slurm", options=options, pools=(pool,)), environment

    @property
    def client(self) -> SlurmClient:
        """A client of the cluster."""
        return SlurmClient(self._commands)

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """One on the loopback interface, which the nodes are too."""
        return control_plane(script, **changes)

    def open(self, *, deadline_seconds: float = 60.0) -> SlurmEngine:
        """A pool of the default partition."""
        return SlurmEngine(
            SlurmClient(replace(self._commands, deadline_seconds=deadline_seconds)),
            pools={"batch": self._pool},
            runs=self._runs,
            terms=SupervisorTerms(log_wait=1.0),
            nodes=SlurmNodes(python=self.python),
            cluster=self.cluster,
            poll_seconds=0.2,
        )

    def spec(self, plane: ControlPlane, *, containers: int = 1, **changes: Any) -> AllocationSpec:
        """One slot for each container."""
        return spec_of(plane, pool="batch", containers=containers, **changes)

    async def lose(self, allocation_id: str) -> None:
        """Kills the supervisors alone."""
        for folder in (self._runs / allocation_id).iterdir():
            if folder.name.isdecimal():
                supervisor = ProcessIdentity.from_json(read_json(RunDirectory(folder).supervisor_file))
                assert supervisor is not None
                assert supervisor.send(signal.SIGKILL)

    async def resources(self) -> Sequence[str]:
        """The run directories and the jobs."""
        folders = [folder.name for folder in self._runs.iterdir()] if self._runs.is_dir() else []
        return [*folders, *(job.name for job in await self.client.live(prefix=self.cluster))]
