"""The documented import name of the training API. Everything here is ``resolute``'s own.

Each module of this package puts its counterpart in its own place, so that imports, ``python -m``, pickles and
editors find it under both names and there is one copy of every object.
"""

import importlib
from typing import Any

from determined import _info, errors
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
from resolute.search_space import Categorical, Constant, Double, Integer, Log

__version__ = "0.38.1"
"""The last release of the API that is served here."""

_SUBMODULES = frozenset(
    {
        "constants",
        "core",
        "estimator",
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
    raise AttributeError(f"module 'determined' has no attribute {name!r}")
