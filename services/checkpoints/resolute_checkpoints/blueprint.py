"""Creates the checkpoints service."""

from __future__ import annotations

import os

from resolute_checkpoints.service import CheckpointsService
from resolute_checkpoints.settings import CheckpointSettings
from resolute_serving.server.service import Blueprint, Environment, Service


def create(environment: Environment) -> Service:
    """Creates the service with settings from environment variables."""
    return CheckpointsService(environment, settings=CheckpointSettings.from_environment(os.environ))


BLUEPRINT = Blueprint(name="checkpoints", package="resolute_checkpoints", create=create)
"""The checkpoints service."""
