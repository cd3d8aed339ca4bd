"""How to make the logs service."""

from __future__ import annotations

from resolute_logs.service import LogsService
from resolute_serving.service import Blueprint, Environment, Service


def create(environment: Environment) -> Service:
    """Makes the service."""
    return LogsService(environment)


BLUEPRINT = Blueprint(name="logs", package="resolute_logs", create=create)
"""The logs service."""
