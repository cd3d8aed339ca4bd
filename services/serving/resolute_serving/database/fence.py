"""Refuses, inside PostgreSQL, the writes of a process that no longer serves its cluster."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute.errors import UnavailableError

_HOLDS = "SELECT 1 FROM cluster.leadership WHERE epoch = %s FOR KEY SHARE"


class FencedError(UnavailableError):
    """Another process serves the cluster now; nothing was written."""


@dataclass(frozen=True)
class Fence:
    """The check at the start of each writing transaction, created by `database.leadership`."""

    epoch: int
    """Number of the process among all that have served the database."""

    @property
    def session(self) -> str:
        """Names the sessions of the process in PostgreSQL, so that its successor finds them."""
        return f"resolute-{self.epoch}"

    def require(self, connection: Connection) -> None:
        """Makes sure that the transaction commits before another process takes over, or fails.

        A row lock, as a foreign key takes it: a process that moves the epoch waits for it. Beats do not.

        Raises:
            FencedError: Another process has taken over.
        """
        if connection.exec_driver_sql(_HOLDS, (self.epoch,)).first() is None:
            raise FencedError(
                "another process serves this cluster now, and nothing was written; connect again"
            )
