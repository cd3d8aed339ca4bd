"""Clears up in the background: uploads that nobody will commit, removals that failed or were cut short."""

from __future__ import annotations

import asyncio
import contextlib

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_checkpoints.retention.remover import CLAIM_SECONDS, Remover
from resolute_checkpoints.settings import CheckpointSettings
from resolute_checkpoints.store import audit
from resolute_checkpoints.store.files import removals
from resolute_checkpoints.store.files.removals import Removal
from resolute_serving.database.engine import Database

_BATCH = 100
_log = structlog.get_logger("collector")


class Collector:
    """Makes a pass now and then, from ``start`` to ``stop``.

    Args:
        database: The registry.
        remover: Carries removals out.
        clock: Tells the age of uploads.
        settings: How old they may get, and how often passes are made.
    """

    def __init__(
        self, *, database: Database, remover: Remover, clock: Clock, settings: CheckpointSettings
    ) -> None:
        self._database = database
        self._remover = remover
        self._clock = clock
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    def wake(self) -> None:
        """Makes the next pass begin at once: there is something to remove."""
        self._wanted.set()

    def start(self) -> None:
        """Begins to make passes."""
        self._task = asyncio.create_task(self._run(), name="checkpoints-collector")

    async def stop(self) -> None:
        """Makes no more passes; one that is cut short is made up for by the next start."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def collect(self) -> int:
        """Makes one pass.

        Returns:
            How many checkpoints' files were removed, or tried to.
        """
        given_up = await self._database.write(self._give_up)
        if given_up:
            _log.info("abandoned uploads are given up", checkpoints=len(given_up))
        count = 0
        while claimed := await self._database.write(self._claim):
            count += len(claimed)
            await self._remover.execute(claimed)
        return count

    async def _run(self) -> None:
        while True:
            try:
                await self.collect()
            except Exception as error:  # noqa: BLE001 - the next pass may succeed
                _log.warning("a pass failed", reason=str(error), exc_info=True)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._settings.collect_seconds)
            self._wanted.clear()

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
