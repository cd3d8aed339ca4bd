"""Creates the logs service."""

from __future__ import annotations

import os

from resolute_logs.service import logs_service
from resolute_serving.database.retention import days_from_environment
from resolute_serving.ingestion.byte_limits import ByteLimits
from resolute_serving.server.service import Blueprint, Environment, Service


def create(environment: Environment) -> Service:
    """Creates the service with settings from environment variables."""
    days = days_from_environment(os.environ, "RESOLUTE_LOGS_RETENTION_DAYS")
    limits = ByteLimits.from_environment(os.environ, prefix="RESOLUTE_LOGS")
    return logs_service(environment, limits=limits, retention_days=days)


BLUEPRINT = Blueprint(name="logs", package="resolute_logs", create=create)
"""The logs service."""
