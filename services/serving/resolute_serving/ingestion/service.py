"""A service that stores batches of runs' reports, answers queries, and removes data past its retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc

from resolute_serving.auth.access_lookup import AccessLookup
from resolute_serving.database.engine import Database
from resolute_serving.database.retention import RetentionSweeper
from resolute_serving.notifier import Notifier
from resolute_serving.observability.gauges import Gauge


@dataclass(kw_only=True)
class IngestionService:
    """The assembled service. Between calls it keeps only the followers in memory."""

    name: str
    """Short name."""
    grpc_names: Sequence[str]
    """Full names of its gRPC services."""
    access_lookup: AccessLookup
    """Knows the roles of users, and the workspaces of what calls name."""
    register: Callable[[grpc.aio.Server], None]
    """Adds its handlers to a server that has not started."""
    database: Database
    """Its own database; it closes it."""
    notifier: Notifier[str]
    """Wakes its streams."""
    sweeper: RetentionSweeper
    """Removes what is too old."""

    async def gauges(self) -> Sequence[Gauge]:
        """Returns how much waits to be written."""
        return await self.database.gauges()

    async def start(self) -> None:
        """Begins to remove what is too old."""
        self.sweeper.start()

    async def stop(self) -> None:
        """Ends the streams, and closes the database once what is queued was written."""
        self.notifier.close()
        await self.sweeper.stop()
        self.database.close()
