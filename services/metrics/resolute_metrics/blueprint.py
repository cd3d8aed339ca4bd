"""Creates the metrics service."""

from __future__ import annotations

import os

from resolute_metrics.limits import Limits
from resolute_metrics.service import metrics_service
from resolute_serving.database.retention import days_from_environment
from resolute_serving.server.service import Blueprint, Environment, Service


def create(environment: Environment) -> Service:
    """Creates the service with limits from environment variables."""
    return metrics_service(
        environment,
        limits=Limits.from_environment(os.environ),
        retention_days=days_from_environment(os.environ, "RESOLUTE_METRICS_RETENTION_DAYS"),
    )


BLUEPRINT = Blueprint(name="metrics", package="resolute_metrics", create=create)
"""The metrics service."""
