"""Creates the experiments service."""

from __future__ import annotations

from resolute_experiments.service import create
from resolute_serving.server.service import Blueprint

BLUEPRINT = Blueprint(name="experiments", package="resolute_experiments", create=create)
"""The experiments service."""
