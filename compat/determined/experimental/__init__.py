"""The Python SDK for people and tools."""

from determined.experimental import client, core_v2
from resolute.client import Determined

__all__ = ["Determined", "client", "core_v2"]
