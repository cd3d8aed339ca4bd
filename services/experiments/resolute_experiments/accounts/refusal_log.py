"""Writes refused calls to the audit log, and limits the number of their rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import ResoluteError
from resolute_experiments.store import audit
from resolute_serving.auth.refusals import Refusals
from resolute_serving.database.engine import Database

KEPT_ROWS = 100_000
KEPT_DAYS = 90
_PAUSE_SECONDS = 5.0
_TRIM_SECONDS = 600.0
_DAY = 86_400.0
_log = structlog.get_logger("audit")


class RefusalLog:
    """Writes one row for equal refusals, every five seconds, and removes rows that are too old or too many.

    Args:
        database: This service's database.
        refusals: The refused calls.
        clock: Clock for the age of rows.
        sleep: Waits for the next pass.
    """

    def __init__(
        self,
        database: Database,
        refusals: Refusals,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._database = database
        self._refusals = refusals
        self._clock = clock
        self._sleep = sleep
        self._trim_at = 0.0

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await self._sleep(_PAUSE_SECONDS)
            await self.write()

    async def write(self) -> None:
        """Writes what there is; what cannot be written is kept for the next time."""
        taken = self._refusals.take()
        if not taken:
            return
        now = self._clock.monotonic()
        trims = now >= self._trim_at

        def work(connection: Connection) -> None:
            for counted in taken:
                audit.record_refusal(connection, counted)
            if trims:
                before = self._clock.time() - KEPT_DAYS * _DAY
                audit.trim_refusals(connection, before=before, most=KEPT_ROWS)

        try:
            await self._database.write(work)
            self._trim_at = now + _TRIM_SECONDS if trims else self._trim_at
        except (ResoluteError, sa.exc.SQLAlchemyError) as failure:
            _log.warning("refusals could not be written to the audit log yet", reason=str(failure))
            for counted in taken:
                self._refusals.add(counted)
