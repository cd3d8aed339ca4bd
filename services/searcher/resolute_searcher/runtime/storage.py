"""The service's database for its handlers: begun work is completed even if its caller stops waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from resolute.errors import UnavailableError
from resolute_serving.database.engine import Database, Work

T = TypeVar("T")


class Storage:
    """Runs reads and writes in tasks of its own.

    A call can be cancelled at any time, when its client gives up. Its decisions are already made, so its
    writes must be completed.

    Args:
        database: The database, which `close` closes.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = False

    async def read(self, work: Work[T]) -> T:
        """Runs work in a read transaction.

        Raises:
            UnavailableError: The database cannot be reached, or the service stops.
        """
        return await asyncio.shield(self.begin(self.database.read(work), name="searcher-read"))

    async def write(self, work: Work[T]) -> T:
        """Runs work in a transaction of its own; returns its result once it is durable.

        Raises:
            ResoluteError: What the work raised; nothing of it was kept.
            UnavailableError: The database cannot be reached, or the service stops.
        """
        return await asyncio.shield(self.begin(self.database.write(work), name="searcher-write"))

    def begin(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Starts a task that `close` waits for.

        Args:
            work: What to do.
            name: Names the task.

        Raises:
            UnavailableError: The service stops.
        """
        if self._closing:
            work.close()
            raise UnavailableError("the searcher stops; try again")
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    async def close(self) -> None:
        """Refuses new work, waits for running work, and closes the database."""
        self._closing = True
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.database.close()

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        # Looked at, so that a failure that no caller waits for any more is not reported as unseen.
        if not task.cancelled():
            task.exception()
