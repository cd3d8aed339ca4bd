"""The SDK, which training scripts and tools import.

``import resolute`` is cheap: it loads neither torch nor gRPC. The parts that need them are loaded at their
first use.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

# Only what every Python 3 can read stands above, so that an old one gets a sentence.
if sys.version_info < (3, 10):  # noqa: UP036 - where a checkout or a copied directory is on the path
    raise ImportError("Resolute needs Python 3.10 or newer; %s is older" % sys.executable)  # noqa: UP031

from resolute import errors
from resolute.info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo, get_cluster_info
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.runtime.import_path import import_from_path
from resolute.trial_errors import InvalidHP

if TYPE_CHECKING:
    from resolute import core
    from resolute.client import Client as Client

LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"
"""Format for ``logging.basicConfig`` with which the severity of each line is recognised on the cluster."""

_LAZY_MODULES = frozenset(
    {
        "accelerate",
        "client",
        "core",
        "core_v2",
        "keras",
        "lightning",
        "pytorch",
        "searcher",
        "tensorboard",
        "testing",
        "transformers",
    }
)

__all__ = [
    "LOG_FORMAT",
    "ClusterInfo",
    "ExperimentConfig",
    "InvalidHP",
    "RendezvousInfo",
    "ResourcesInfo",
    "TrialInfo",
    "core",
    "errors",
    "get_cluster_info",
    "import_from_path",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        try:
            return importlib.import_module(f"resolute.{name}")
        except ModuleNotFoundError as failure:
            if failure.name != f"resolute.{name}":
                raise
    if name == "Client":
        return importlib.import_module("resolute.client").Client
    if name == "__version__":
        # Finding the installed distribution takes longer than everything else here.
        return importlib.import_module("resolute.contracts.distribution").version()
    raise AttributeError(f"module 'resolute' has no attribute {name!r}")
