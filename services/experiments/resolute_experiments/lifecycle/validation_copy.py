"""Keeps the best and the last validation of each trial in its row, as the metrics service tells them.

One cursor serves all experiments: what the metrics service changed since is asked for in one call, whoever it
belongs to. So trials of old homes, trials outside of the cluster and reports that arrive late need no path of
their own.
"""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute_experiments.clients import Clients
from resolute_experiments.store import validations
from resolute_experiments.store.validations import TrialValidations
from resolute_experiments.topics import Topic, watched
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier
from resolute_serving.repetition import repeat

_PAUSE_SECONDS = 2.0
_PAGE = 1000
_DEADLINE_SECONDS = 30.0
_log = structlog.get_logger("validations")


class ValidationCopy:
    """Copies the changes of validations from the metrics service.

    Args:
        database: This service's database.
        clients: The other services.
        notifier: Tells of changes.
    """

    def __init__(self, database: Database, *, clients: Clients, notifier: Notifier[Topic]) -> None:
        self._database = database
        self._clients = clients
        self._notifier = notifier
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Copies changes until the service stops."""

        async def copy() -> float:
            await self.refresh()
            return _PAUSE_SECONDS

        failures = LoggedBackoff(_log, "validations cannot be copied")
        await repeat(copy, notifier=self._notifier, failures=failures)

    async def refresh(self) -> None:
        """Copies every change that the metrics service has now.

        Raises:
            ResoluteError: The metrics service did not answer; to be repeated.
        """
        async with self._lock:
            cursor = await self._database.read(validations.cursor)
            while True:
                response = await self._changes(cursor)
                if response.latest_revision < cursor:
                    # Its data was replaced, by that of an older backup for instance: the copy is made again.
                    cursor = 0
                elif response.trials:
                    cursor = response.trials[-1].revision
                    await self._store(response, cursor)
                else:
                    return

    async def _changes(self, after: int) -> metrics_service_pb2.ListTrialValidationsResponse:
        request = metrics_service_pb2.ListTrialValidationsRequest(after_revision=after, page_size=_PAGE)
        return await self._clients.metrics.ListTrialValidations(request, timeout=_DEADLINE_SECONDS)

    async def _store(self, response: metrics_service_pb2.ListTrialValidationsResponse, revision: int) -> None:
        changes = [
            TrialValidations(
                trial_id=one.trial_id,
                experiment_id=one.experiment_id,
                best_value=one.best_value if one.HasField("best_value") else None,
                best_steps=one.best_steps if one.HasField("best_steps") else None,
                last_value=one.last_value if one.HasField("last_value") else None,
                last_steps=one.last_steps,
            )
            for one in response.trials
        ]
        await self._database.write(partial(validations.store, changes=changes, revision=revision))
        self._notifier.notify(*{watched(change.experiment_id) for change in changes})
