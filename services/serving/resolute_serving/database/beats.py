"""Beats: signs in a PostgreSQL database that a process serves, by which it also learns of its replacement."""

from __future__ import annotations

import asyncio

import psycopg
from psycopg.rows import TupleRow
from sqlalchemy.engine import URL

_SECONDS = 5.0
_MOVE = "UPDATE cluster.leadership SET beats = beats + 1 WHERE epoch = %s"


class Beats:
    """Advances the beats of an epoch, by a connection of its own, from one thread.

    A call ends in time even if the other end neither answers nor closes the connection, for example behind a
    pooler that has lost its server: a process must learn that it was replaced.

    Args:
        url: The database.
        epoch: Epoch of this process.
    """

    def __init__(self, url: URL, *, epoch: int) -> None:
        self._url = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._epoch = epoch
        self._loop = asyncio.new_event_loop()
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None

    def move(self) -> bool | None:
        """Moves them by one.

        Returns:
            Whether the epoch is still that of this process; None if the database does not answer.
        """
        try:
            return self._loop.run_until_complete(asyncio.wait_for(self._move(), _SECONDS))
        except (psycopg.Error, OSError, asyncio.TimeoutError):
            self._loop.run_until_complete(self._disconnect())
            return None

    def close(self) -> None:
        """Ends the connection."""
        self._loop.run_until_complete(self._disconnect())
        self._loop.close()

    async def _move(self) -> bool:
        if self._connection is None:
            self._connection = await psycopg.AsyncConnection.connect(
                self._url,
                autocommit=True,
                connect_timeout=int(_SECONDS),
                # What a crash of the server takes of it is of no use, so it waits for no disk.
                options="-c synchronous_commit=off",
            )
        cursor = await self._connection.execute(_MOVE, (self._epoch,))
        return cursor.rowcount == 1

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
