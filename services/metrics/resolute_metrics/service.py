"""The metrics service, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import grpc

from resolute.api.metrics.v1.metrics_service_pb2_grpc import add_MetricsServiceServicer_to_server
from resolute_metrics.limits import Limits
from resolute_metrics.servicer import Servicer
from resolute_metrics.store.deletion import delete_expired
from resolute_serving.database.retention import RetentionSweeper, Sleep
from resolute_serving.following import PollIntervals
from resolute_serving.observability.gauges import Gauge
from resolute_serving.server.service import Environment

_PAUSE_SECONDS = 0.2
"""Between two looks of a watch: a trial that reports thousands of times a second is not plotted as often."""


class MetricsService:
    """Takes and answers for metrics. Between calls it remembers only who watches.

    Args:
        environment: Its database and clock.
        limits: Bounds of each trial.
        pace: How often watches look without being told; what suits the database by default.
        retention_days: How long points are kept after the last of a trial; zero forever.
        sleep: Waits for the next removal of what is too old.
    """

    name = "metrics"
    grpc_names: Sequence[str] = ("resolute.api.metrics.v1.MetricsService",)

    def __init__(
        self,
        environment: Environment,
        *,
        limits: Limits,
        pace: PollIntervals | None = None,
        retention_days: float = 0.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.access_lookup = environment.access_lookup
        self._database = environment.open_database(self.name)
        self.servicer = Servicer(
            self._database,
            limits=limits,
            clock=environment.clock,
            pace=pace or replace(PollIntervals.on(environment.database_url), pause=_PAUSE_SECONDS),
        )
        """The handlers."""
        self.sweeper = RetentionSweeper(
            self._database, delete_expired, days=retention_days, clock=environment.clock, sleep=sleep
        )
        """Removes points that are too old."""

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handlers to a server."""
        add_MetricsServiceServicer_to_server(self.servicer, server)

    async def gauges(self) -> Sequence[Gauge]:
        """Returns how much waits to be written."""
        return await self._database.gauges()

    async def start(self) -> None:
        """Begins to remove points that are too old."""
        self.sweeper.start()

    async def stop(self) -> None:
        """Ends watches, and closes the database once what is queued was written."""
        self.servicer.notifier.close()
        await self.sweeper.stop()
        self._database.close()
