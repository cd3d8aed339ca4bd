"""Training in PyTorch: ``resolute.pytorch``, and the search for a DeepSpeed config."""

import importlib
from typing import Any

from resolute.pytorch import *

_SUBMODULES = frozenset({"deepspeed", "dsat", "lightning"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"determined.pytorch.{name}")
    raise AttributeError(f"module 'determined.pytorch' has no attribute {name!r}")
