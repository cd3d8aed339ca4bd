"""Assembles the metrics service."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from resolute.api.metrics.v1.metrics_service_pb2_grpc import add_MetricsServiceServicer_to_server
from resolute_metrics.limits import Limits
from resolute_metrics.servicer import Servicer
from resolute_metrics.store.deletion import delete_expired
from resolute_serving.database.retention import RetentionSweeper, Sleep
from resolute_serving.following import PollIntervals
from resolute_serving.ingestion.service import IngestionService
from resolute_serving.server.service import Environment

NAME = "metrics"
_PAUSE_SECONDS = 0.2
"""Between two looks of a watch: a trial that reports thousands of times a second is not plotted as often."""


def metrics_service(
    environment: Environment,
    *,
    limits: Limits,
    retention_days: float = 0.0,
    sleep: Sleep = asyncio.sleep,
) -> IngestionService:
    """Creates the metrics service.

    Args:
        environment: Its database and clock.
        limits: Bounds of each trial.
        retention_days: How long points are kept after the last of a trial; zero forever.
        sleep: Waits for the next removal of what is too old.
    """
    database, clock = environment.open_database(NAME), environment.clock
    pace = replace(PollIntervals.on(environment.database_url), pause=_PAUSE_SECONDS)
    servicer = Servicer(database, limits=limits, clock=clock, pace=pace)
    return IngestionService(
        name=NAME,
        grpc_names=("resolute.api.metrics.v1.MetricsService",),
        access_lookup=environment.access_lookup,
        register=lambda server: add_MetricsServiceServicer_to_server(servicer, server),
        database=database,
        notifier=servicer.notifier,
        sweeper=RetentionSweeper(database, delete_expired, days=retention_days, clock=clock, sleep=sleep),
    )
