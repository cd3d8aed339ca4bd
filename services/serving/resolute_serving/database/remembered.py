"""Cached reads of a database, for work that polls while nothing changes."""

from __future__ import annotations

from typing import Generic, TypeVar

from resolute_serving.database.engine import Database, Work

T = TypeVar("T")


class Remembered(Generic[T]):
    """The cached result of a read, which is repeated after a commit.

    If other processes write too, as on PostgreSQL, each call reads.

    Args:
        database: The database.
        work: The read.
    """

    def __init__(self, database: Database, work: Work[T]) -> None:
        self._database = database
        self._work = work
        self._found: tuple[int, T] | None = None

    async def get(self) -> T:
        """Returns what a read would find now.

        Raises:
            UnavailableError: The database cannot be reached.
        """
        # As it was before the read: what is committed meanwhile is read by the next call.
        commits = self._database.commits
        if self._found is not None and self._found[0] == commits:
            return self._found[1]
        found = await self._database.read(self._work)
        self._found = None if commits is None else (commits, found)
        return found
