"""The specs of runs for engines: the allocation and the run's tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.engine import Connection

from resolute_engines.protocol import AllocationSpec
from resolute_experiments.specs.identity import run_identity
from resolute_experiments.store import experiments, runs
from resolute_serving.context import TrialRun
from resolute_serving.database.engine import Database
from resolute_serving.database.remembered import Remembered


@dataclass(frozen=True, kw_only=True)
class RunSpecs:
    """Makes both of what the database has."""

    database: Database
    """Has the runs."""
    issue_token: Callable[[TrialRun], str]
    """Issues the token of a run."""
    address: str
    """``host:port`` where supervisors reach the services."""

    async def allocation(self, run: runs.Run, containers: Sequence[runs.Container]) -> AllocationSpec:
        """The allocation of a run, as an engine is to launch it."""

        def work(connection: Connection) -> AllocationSpec:
            experiment = experiments.get(connection, experiment_id=run.experiment_id)
            return AllocationSpec(
                allocation_id=run.allocation_id,
                placements=tuple(container.slot_ids for container in containers),
                address=self.address,
                token=self.issue_token(run_identity(connection, run)),
                pool=run.resource_pool,
                config=experiment.config,
                priority=experiment.priority,
            )

        return await self.database.read(work)

    async def token(self, run: runs.Run) -> str:
        """A fresh token of a run."""
        return self.issue_token(await self.database.read(lambda c: run_identity(c, run)))

    async def live(self, pools: Sequence[str]) -> list[runs.Run]:
        """The runs of some pools that were not settled, oldest first."""
        return [run for run in await self._unsettled.get() if run.resource_pool in pools]

    @cached_property
    def _unsettled(self) -> Remembered[list[runs.Run]]:
        return Remembered(self.database, runs.unfinalized)
