"""The logs service, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc

from resolute.api.logs.v1.logs_service_pb2_grpc import add_LogsServiceServicer_to_server
from resolute_logs.servicer import Servicer
from resolute_logs.store.deletion import delete_expired
from resolute_serving.byte_limits import ByteLimits
from resolute_serving.database.retention import RetentionSweeper, Sleep
from resolute_serving.following import PollIntervals
from resolute_serving.observability.gauges import Gauge
from resolute_serving.server.service import Environment


class LogsService:
    """Takes, filters and follows logs. Between calls it remembers only who follows.

    Args:
        environment: Its database and clock.
        limits: How much trials and workspaces may store.
        pace: How often followers look without being told; what suits the database by default.
        retention_days: How long lines are kept; zero forever.
        sleep: Waits for the next removal of what is too old.
    """

    name = "logs"
    grpc_names: Sequence[str] = ("resolute.api.logs.v1.LogsService",)

    def __init__(
        self,
        environment: Environment,
        *,
        limits: ByteLimits,
        pace: PollIntervals | None = None,
        retention_days: float = 0.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.access_lookup = environment.access_lookup
        self._database = environment.open_database(self.name)
        pace = pace or PollIntervals.on(environment.database_url)
        self.servicer = Servicer(self._database, limits=limits, clock=environment.clock, pace=pace)
        """The handlers."""
        self.sweeper = RetentionSweeper(
            self._database, delete_expired, days=retention_days, clock=environment.clock, sleep=sleep
        )
        """Removes lines that are too old."""

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handlers to a server."""
        add_LogsServiceServicer_to_server(self.servicer, server)

    async def gauges(self) -> Sequence[Gauge]:
        """Returns how much waits to be written."""
        return await self._database.gauges()

    async def start(self) -> None:
        """Begins to remove lines that are too old."""
        self.sweeper.start()

    async def stop(self) -> None:
        """Ends followers, and closes the database once what is queued was written."""
        self.servicer.notifier.close()
        await self.sweeper.stop()
        self._database.close()
