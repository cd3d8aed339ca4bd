"""Keras on the platform: ``resolute.keras``."""

from typing import Any

from determined._older_names import attribute
from resolute.keras import *
from resolute.keras import ResoluteCallback as DeterminedCallback


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
