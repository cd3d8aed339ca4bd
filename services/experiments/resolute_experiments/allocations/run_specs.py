"""The specs of runs for engines: the allocation and the run's tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from sqlalchemy.engine import Connection

from resolute_engines.configs.host_access import named_directory
from resolute_engines.protocol import AllocationSpec, Pool
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.specs.identity import run_identity
from resolute_experiments.specs.storage import moved
from resolute_experiments.store import experiments, runs
from resolute_serving.context import TrialRun
from resolute_serving.database.engine import Database
from resolute_serving.database.remembered import Remembered


@dataclass(frozen=True, kw_only=True)
class RunSpecs:
    """Builds both from the database."""

    database: Database
    """Has the runs."""
    make_directory: Callable[[str, int], Awaitable[str]]
    """Makes the directory of a workspace in one for checkpoints, and returns its path."""
    issue_token: Callable[[TrialRun], str]
    """Issues the token of a run."""
    address: str
    """``host:port`` where supervisors reach the services."""

    async def allocation(
        self, run: runs.Run, containers: Sequence[runs.Container], *, pool: Pool
    ) -> AllocationSpec:
        """The allocation of a run, as the engine of its pool is to launch it.

        Raises:
            UnavailableError: Its checkpoints need a directory, and the service that makes it does not answer.
            FailedPreconditionError: The directory cannot be made.
            FencedError: Another process serves the cluster now, and the run may be its own.
        """
        run = await self._with_directory(run, pool)

        def work(connection: Connection) -> AllocationSpec:
            experiment = experiments.get(connection, experiment_id=run.experiment_id)
            return AllocationSpec(
                allocation_id=run.allocation_id,
                placements=tuple(container.slot_ids for container in containers),
                address=self.address,
                token=self.issue_token(run_identity(connection, run)),
                pool=run.resource_pool,
                config=moved(experiment.config, run.checkpoint_directory),
                priority=experiment.priority,
                checkpoint_directory=run.checkpoint_directory,
            )

        return await self.database.read_fenced(work)

    async def _with_directory(self, run: runs.Run, pool: Pool) -> runs.Run:
        """Gives a run the directory of its workspace, where its pool has such for its checkpoints.

        It is written down: an experiment may change its workspace, and a run keeps what it has mounted.
        """

        def look(connection: Connection) -> tuple[str | None, int]:
            config = experiments.get(connection, experiment_id=run.experiment_id).config
            workspace = workspaces.of_experiment(connection, run.experiment_id)
            return named_directory(config, pool.checkpoint_directories), workspace.number

        if run.checkpoint_directory or not pool.checkpoint_directories:
            return run
        directory, workspace = await self.database.read(look)
        if directory is None:
            return run
        made = await self.make_directory(directory, workspace)
        note = partial(runs.update, allocation_id=run.allocation_id, checkpoint_directory=made)
        await self.database.write(note)
        return replace(run, checkpoint_directory=made)

    async def token(self, run: runs.Run) -> str:
        """A fresh token of a run."""
        return self.issue_token(await self.database.read(lambda c: run_identity(c, run)))

    async def live(self, pools: Sequence[str]) -> list[runs.Run]:
        """The runs of some pools that were not settled, oldest first."""
        return [run for run in await self._unsettled.get() if run.resource_pool in pools]

    @cached_property
    def _unsettled(self) -> Remembered[list[runs.Run]]:
        return Remembered(self.database, runs.unfinalized)
