"""Training with PyTorch: ``resolute.pytorch``, and the search for a DeepSpeed config."""

from resolute.pytorch import *
from resolute.pytorch.metrics.reducers import FunctionReducer
from resolute.pytorch.samplers import DistributedBatchSampler, RepeatBatchSampler, SkipBatchSampler

_SimpleReducer = FunctionReducer
