"""Modules that clients of older releases import besides the client itself."""

from typing import Any

from determined._older_names import attribute


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
