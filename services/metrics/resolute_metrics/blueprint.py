"""How to make the metrics service."""

from __future__ import annotations

import os

from resolute_metrics.limits import Limits
from resolute_metrics.service import MetricsService
from resolute_serving.service import Blueprint, Environment, Service


def create(environment: Environment) -> Service:
    """Makes the service with limits from the process's environment."""
    return MetricsService(environment, limits=Limits.from_environment(os.environ))


BLUEPRINT = Blueprint(name="metrics", package="resolute_metrics", create=create)
"""The metrics service."""
