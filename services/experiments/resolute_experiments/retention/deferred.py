"""Deferred retention: applies policies that could not be applied completely at the end of an experiment.

At that time reports had not arrived yet, or checkpoints were being read.
"""

from __future__ import annotations

from functools import partial

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.retention.garbage_collection import (
    Unreported,
    apply_retention,
    trials_awaiting_reports,
)
from resolute_experiments.store import experiments
from resolute_experiments.store.copies import reported_steps
from resolute_experiments.store.experiments import Experiment
from resolute_serving.repetition import repeat

_LOOK_SECONDS = 60.0
"""Between two looks: what is owed may wait for as long as a machine is away."""
_log = structlog.get_logger("deferred-retention")


class DeferredRetention:
    """Deletes the checkpoints that remained at the end of an experiment. Pending work survives restarts.

    Args:
        core: The context that all handlers share.
        clients: The other services.
        unreported: Returns the allocations whose reports have not all arrived.
    """

    def __init__(self, core: ServiceContext, *, clients: Clients, unreported: Unreported) -> None:
        self._core = core
        self._clients = clients
        self._unreported = unreported

    async def run(self) -> None:
        """Looks for reports that have arrived until the service stops."""

        async def collect() -> float:
            await self.look()
            return _LOOK_SECONDS

        failures = LoggedBackoff(_log, "checkpoints that were left cannot be collected")
        await repeat(collect, notifier=self._core.notifier, failures=failures)

    async def look(self) -> None:
        """Applies each policy that is owed and waits for no report; again while checkpoints are read.

        Raises:
            UnavailableError: A service is away; to be repeated.
        """
        database = self._core.database
        for experiment in await database.read(experiments.with_owed_retention):
            if await trials_awaiting_reports(experiment, unreported=self._unreported, database=database):
                continue
            if await apply_retention(experiment, late=(), database=database, clients=self._clients):
                continue
            await database.write(partial(_settle, experiment=experiment))


def _settle(connection: Connection, experiment: Experiment) -> None:
    """Notes that the reports of an experiment have arrived, and what they left to do is done."""
    experiments.clear_owed_retention(connection, experiment)
    reported_steps.look_again(connection, experiment.id)
