"""Cleans up in the background: abandoned uploads, and removals that failed or were interrupted."""

from __future__ import annotations

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.contracts.clock import Clock
from resolute_checkpoints.retention.remover import CLAIM_SECONDS, Remover
from resolute_checkpoints.settings import CheckpointSettings
from resolute_checkpoints.store import audit
from resolute_checkpoints.store.files import removals
from resolute_checkpoints.store.files.removals import Removal
from resolute_serving.database.engine import Database
from resolute_serving.database.remembered import Remembered
from resolute_serving.repetition import PeriodicTask

_BATCH = 100
_log = structlog.get_logger("collector")


class Collector:
    """Makes a pass at intervals, from ``start`` to ``stop``.

    Args:
        database: The registry.
        remover: Carries out removals.
        clock: Clock for the age of uploads.
        settings: The age limit of uploads, and the interval of passes.
    """

    def __init__(
        self, *, database: Database, remover: Remover, clock: Clock, settings: CheckpointSettings
    ) -> None:
        self._database = database
        self._remover = remover
        self._clock = clock
        self._settings = settings
        self._anything = Remembered(database, removals.any_open)
        self.passes = PeriodicTask(
            self.collect,
            name="checkpoints-collector",
            seconds=settings.collect_seconds,
            failures=LoggedBackoff(_log, "a pass failed"),
        )
        """Calls ``collect`` from time to time. The next start repeats a pass that ``stop`` interrupted."""

    async def collect(self) -> int:
        """Makes one pass.

        Returns:
            How many checkpoints' files were removed, or tried to.
        """
        if not await self._anything.get():
            return 0
        given_up = await self._database.write(self._give_up)
        if given_up:
            _log.info("abandoned uploads are given up", checkpoints=len(given_up))
        count = 0
        while claimed := await self._database.write(self._claim):
            count += len(claimed)
            await self._remover.execute(claimed)
        return count

    def _give_up(self, connection: Connection) -> list[str]:
        now = self._clock.time()
        given_up = removals.abort_abandoned(
            connection,
            now=now,
            begun_before=now - self._settings.abandon_seconds,
            orphans_before=now - self._settings.orphan_seconds,
        )
        for checkpoint_id in given_up:
            audit.record(
                connection, action="checkpoint.abandon", target=checkpoint_id, actor="collector", now=now
            )
        return given_up

    def _claim(self, connection: Connection) -> list[Removal]:
        now = self._clock.time()
        return removals.claim_due(connection, now=now, until=now + CLAIM_SECONDS, limit=_BATCH)
