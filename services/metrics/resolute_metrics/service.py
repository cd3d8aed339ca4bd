"""The metrics service, put together."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from resolute.api.metrics.v1.metrics_service_pb2_grpc import add_MetricsServiceServicer_to_server
from resolute_metrics.limits import Limits
from resolute_metrics.servicer import Servicer
from resolute_serving.service import Environment


class MetricsService:
    """Takes and answers for metrics. It keeps nothing in memory between calls.

    Args:
        environment: Its database and clock.
        limits: Bounds of each trial.
    """

    name = "metrics"
    grpc_names: Sequence[str] = ("resolute.api.metrics.v1.MetricsService",)

    def __init__(self, environment: Environment, *, limits: Limits) -> None:
        self._database = environment.open_database(self.name)
        self.servicer = Servicer(self._database, limits=limits, clock=environment.clock)
        """The handlers."""

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handlers to a server."""
        add_MetricsServiceServicer_to_server(self.servicer, server)

    async def start(self) -> None:
        """Has nothing to start."""

    async def stop(self) -> None:
        """Closes the database once what is queued was written."""
        self._database.close()
