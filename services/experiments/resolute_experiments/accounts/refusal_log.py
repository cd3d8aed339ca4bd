"""Writes refused calls to the audit log, and limits the number of their rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import structlog
from sqlalchemy.exc import SQLAlchemyError

from resolute.contracts.clock import Clock
from resolute.errors import ConflictError, InvalidArgumentError, ResoluteError
from resolute_experiments.store import audit
from resolute_serving.auth.refusals import CountedRefusal, Refusals
from resolute_serving.database.engine import Database

KEPT_ROWS = 100_000
KEPT_DAYS = 90
_PAUSE_SECONDS = 5.0
_TRIM_SECONDS = 600.0
_DAY = 86_400.0
_REFUSED = (InvalidArgumentError, ConflictError, ValueError, OverflowError)
"""What is raised for a row that no database takes: another try would end the same way."""
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
        """Writes what there is, and keeps for the next time what cannot be written yet."""
        taken = self._refusals.take()
        if not taken:
            return
        # Work of its own for each row: they share a commit, and a row that the database refuses fails alone.
        rows = (partial(audit.record_refusal, counted=counted) for counted in taken)
        failures = await asyncio.gather(*map(self._database.write, rows), return_exceptions=True)
        self._note_failures(zip(taken, failures, strict=True))
        now = self._clock.monotonic()
        if now >= self._trim_at:
            before = self._clock.time() - KEPT_DAYS * _DAY
            trim = partial(audit.trim_refusals, before=before, most=KEPT_ROWS)
            try:
                await self._database.write(trim)
                self._trim_at = now + _TRIM_SECONDS
            except (ResoluteError, SQLAlchemyError) as failure:
                _log.warning("old refusals could not be removed from the audit log yet", reason=str(failure))

    def _note_failures(self, outcomes: Iterable[tuple[CountedRefusal, BaseException | None]]) -> None:
        later: BaseException | None = None
        for counted, failure in outcomes:
            if isinstance(failure, _REFUSED):
                _log.warning("a refusal does not fit the audit log", refusal=counted, reason=str(failure))
            elif failure is not None:
                self._refusals.add(counted)
                later = failure
        if later is not None:
            _log.warning("refusals could not be written to the audit log yet", reason=str(later))
