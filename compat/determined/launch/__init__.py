"""Layers that start the workers of a distributed trial."""

from typing import Any

from determined._older_names import attribute


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
