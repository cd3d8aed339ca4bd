"""Determined's names: most are those of ``resolute``; what only Determined has is here.

A module whose names are all those of a module of ``resolute`` puts that module in its own place; the others
import what they share. Either way there is one copy of every object, which imports, pickles, ``python -m``
and editors find.
"""

import importlib
import sys
from typing import Any

from determined import _info, errors
from determined._older_names import OlderModules, attribute
from determined.search_space import Categorical, Constant, Double, Integer, Log
from resolute import (
    LOG_FORMAT,
    ClusterInfo,
    ExperimentConfig,
    InvalidHP,
    RendezvousInfo,
    ResourcesInfo,
    TrialInfo,
    get_cluster_info,
    import_from_path,
)

__version__ = "0.38.1"
"""The last release of the API that is served here."""

_SUBMODULES = frozenset(
    {
        "cli",
        "common",
        "constants",
        "core",
        "experimental",
        "horovod",
        "keras",
        "launch",
        "lightning",
        "pytorch",
        "searcher",
        "tensorboard",
        "transformers",
        "util",
    }
)


def __getattr__(name: str) -> Any:
    if name == "TrialContext":  # the base of the contexts of all frameworks, loaded with them
        return importlib.import_module("resolute.pytorch.trial.base_context").TrialContext
    if name in _SUBMODULES:
        return importlib.import_module(f"determined.{name}")
    return attribute(__name__, name)


sys.meta_path.append(OlderModules())
