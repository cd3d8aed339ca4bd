"""The Python SDK for people and tools."""

from determined.experimental import client
from resolute.client import Determined

__all__ = ["Determined", "client"]
