"""Creates the preemption service."""

from __future__ import annotations

import os

from resolute_preemption.service import PreemptionService
from resolute_preemption.settings import PreemptionSettings
from resolute_serving.server.service import Blueprint, Environment, Service


def create(environment: Environment) -> Service:
    """Creates the service with settings from environment variables."""
    return PreemptionService(environment, settings=PreemptionSettings.from_environment(os.environ))


BLUEPRINT = Blueprint(name="preemption", package="", create=create)
"""The preemption service. It owns no database."""
