"""The Python SDK for people and tools."""

import importlib
from typing import Any

from determined._older_names import attribute
from determined.experimental import client, core_v2
from determined.experimental.client import *
from determined.experimental.client import Determined

__all__ = ["Determined", "client", "core_v2"]

_OF_FIRST_RELEASES = frozenset({"Mode", "create", "create_trial_instance", "test_one_batch"})


def __getattr__(name: str) -> Any:
    if name in _OF_FIRST_RELEASES:  # loads torch, which clients need not have
        return getattr(importlib.import_module("resolute.pytorch.training.local_test"), name)
    return attribute(__name__, name)
