"""The contract of engines, kept by processes of this machine."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import ControlPlane, control_plane
from support.engines.contract import (
    BacklogContract,
    EngineContract,
    FilesContract,
    LinesContract,
    TokenContract,
)

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute_engines.environment import SupervisorTerms
from resolute_engines.local.engine import LocalEngine
from resolute_engines.protocol import AllocationSpec, Engine


class LocalUnderTest:
    """Processes of this machine."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """One on the loopback interface."""
        return control_plane(script, **changes)

    def open(self) -> Engine:
        """Two slots."""
        return LocalEngine(self._runs, slots=2, terms=SupervisorTerms(log_wait=1.0))

    def spec(self, plane: ControlPlane, *, containers: int = 1) -> AllocationSpec:
        """One slot for each container."""
        return AllocationSpec(
            allocation_id=plane.spec.allocation_id,
            placements=tuple((rank,) for rank in range(containers)),
            address=plane.address,
            token="token-0",
        )

    async def lose(self, allocation_id: str) -> None:
        """Kills the supervisors alone."""
        for folder in (self._runs / allocation_id).iterdir():
            supervisor = ProcessIdentity.from_json(read_json(RunDirectory(folder).supervisor_file))
            assert supervisor is not None
            assert supervisor.send(signal.SIGKILL)

    async def resources(self) -> Sequence[str]:
        """The run directories."""
        return [folder.name for folder in self._runs.iterdir()] if self._runs.is_dir() else []


class TestLocal(EngineContract, FilesContract, LinesContract, BacklogContract, TokenContract):
    """Processes of this machine."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> LocalUnderTest:
        """Its run directories."""
        return LocalUnderTest(tmp_path / "runs")
