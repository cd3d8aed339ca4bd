"""Determined's names: most are those of ``resolute``; names that only Determined has are here.

Modules import the names that they share with ``resolute``, so there is only one copy of every object. It can
be imported, pickled, run by ``python -m`` and found by editors.
"""

import importlib
from typing import Any

from determined._older_names import attribute  # first: it finds the modules of this package

# isort: split
from determined import _info, errors
from determined.__version__ import __version__ as __version__
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


def __getattr__(name: str) -> Any:
    if name == "TrialContext":  # the base of the contexts of all frameworks, loaded with them
        return importlib.import_module("resolute.pytorch.trial.base_context").TrialContext
    return attribute(__name__, name)
