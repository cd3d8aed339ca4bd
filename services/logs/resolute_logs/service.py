"""Assembles the logs service."""

from __future__ import annotations

import asyncio

from resolute.api.logs.v1.logs_service_pb2_grpc import add_LogsServiceServicer_to_server
from resolute_logs.servicer import Servicer
from resolute_logs.store.deletion import delete_expired
from resolute_serving.database.retention import RetentionSweeper, Sleep
from resolute_serving.following import PollIntervals
from resolute_serving.ingestion.byte_limits import ByteLimits
from resolute_serving.ingestion.service import IngestionService
from resolute_serving.server.service import Environment

NAME = "logs"


def logs_service(
    environment: Environment,
    *,
    limits: ByteLimits,
    retention_days: float = 0.0,
    sleep: Sleep = asyncio.sleep,
) -> IngestionService:
    """Creates the logs service.

    Args:
        environment: Its database and clock.
        limits: How much trials and workspaces may store.
        retention_days: How long lines are kept; zero forever.
        sleep: Waits for the next removal of what is too old.
    """
    database, clock = environment.open_database(NAME), environment.clock
    servicer = Servicer(database, limits=limits, clock=clock, pace=PollIntervals.on(environment.database_url))
    return IngestionService(
        name=NAME,
        grpc_names=("resolute.api.logs.v1.LogsService",),
        access_lookup=environment.access_lookup,
        register=lambda server: add_LogsServiceServicer_to_server(servicer, server),
        database=database,
        notifier=servicer.notifier,
        sweeper=RetentionSweeper(database, delete_expired, days=retention_days, clock=clock, sleep=sleep),
    )
