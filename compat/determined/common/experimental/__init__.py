"""The Python SDK for people and tools, as older releases imported it."""

from typing import Any

from determined._older_names import attribute
from determined.experimental.client import *


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
