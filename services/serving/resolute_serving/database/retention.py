"""Removes data past its retention, batch by batch, while a service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import InvalidArgumentError, ResoluteError
from resolute_serving.database.engine import Database

_DAY = 86_400.0
_PAUSE_SECONDS = 3600.0
_log = structlog.get_logger("retention")

Sleep = Callable[[float], Awaitable[object]]
"""Waits some seconds."""


class RemoveBatch(Protocol):
    """Removes one batch of old data, so that no transaction delays others for long."""

    def __call__(self, connection: Connection, *, before: float) -> bool:
        """Removes something from before a Unix time; returns whether more may be left."""


class RetentionSweeper:
    """Removes old data once an hour.

    Args:
        database: The database.
        remove_some: Removes one batch.
        days: Number of days for which data is kept; zero for ever.
        clock: Clock for the age of data.
        sleep: Waits for the next pass.
    """

    def __init__(
        self,
        database: Database,
        remove_some: RemoveBatch,
        *,
        days: float,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._database = database
        self._remove_some = remove_some
        self._days = days
        self._clock = clock
        self._sleep = sleep
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to sweep, if anything is ever too old."""
        if self._days:
            self._task = asyncio.create_task(self._run(), name=f"{self._database.name}-retention")

    async def stop(self) -> None:
        """Ends sweeping; what is left is removed another time."""
        self._stop.set()
        if self._task is not None:
            await self._task

    async def sweep(self) -> None:
        """Removes everything that is too old now."""
        work = partial(self._remove_some, before=self._clock.time() - self._days * _DAY)
        while not self._stop.is_set() and await self._database.write(work):
            pass

    async def _run(self) -> None:
        while not self._stop.is_set():
            try:
                await self.sweep()
            except ResoluteError as failure:
                _log.warning("a sweep failed; the next one goes on", reason=str(failure))
            except Exception:  # noqa: BLE001 - a defect must not end the sweeps for good
                _log.exception("a sweep failed by a defect")
            await self._pause()

    async def _pause(self) -> None:
        waits = asyncio.ensure_future(self._sleep(_PAUSE_SECONDS)), asyncio.ensure_future(self._stop.wait())
        _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in left:
            wait.cancel()


def days_from_environment(variables: Mapping[str, str], name: str) -> float:
    """Reads for how many days something is kept; zero, the default, forever.

    Raises:
        InvalidArgumentError: The variable holds no number of days.
    """
    text = variables.get(name, "")
    try:
        days = float(text or 0)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise InvalidArgumentError(
            f"{name} is {text!r}; a number of days was expected, or 0 to keep for ever"
        )
    return days
