"""Errors of calls to a cluster."""

from typing import Any

from determined._older_names import attribute
from determined.common.api import errors


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
