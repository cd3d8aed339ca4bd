"""Training in PyTorch: ``resolute.pytorch``, and the search for a DeepSpeed config."""

import importlib
from typing import Any

from determined._older_names import attribute
from resolute.pytorch import *
from resolute.pytorch.metrics.reducers import FunctionReducer
from resolute.pytorch.samplers import DistributedBatchSampler, RepeatBatchSampler, SkipBatchSampler

_SimpleReducer = FunctionReducer
_SUBMODULES = frozenset({"deepspeed", "dsat", "lightning"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"determined.pytorch.{name}")
    return attribute(__name__, name)
