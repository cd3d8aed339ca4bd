"""Modules that run within a task."""

from typing import Any

from determined._older_names import attribute


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
