"""Training in PyTorch: write a ``PyTorchTrial``, and a ``Trainer`` does the rest.

::

    with pytorch.init() as context:
        trainer = pytorch.Trainer(MyTrial(context), context)
        trainer.fit(max_length=pytorch.Epoch(10), validation_period=pytorch.Epoch(1))
"""

from resolute.pytorch import experimental, samplers
from resolute.pytorch.batch_process import (
    TorchBatchProcessor,
    TorchBatchProcessorContext,
    torch_batch_process,
)
from resolute.pytorch.callbacks import PyTorchCallback
from resolute.pytorch.context import PyTorchTrialContext
from resolute.pytorch.data import DataLoader, TorchData, adapt_batch_sampler, data_length, to_device
from resolute.pytorch.experimental_context import PyTorchExperimentalContext
from resolute.pytorch.initialization import init
from resolute.pytorch.loading import CheckpointLoadContext, load_trial_from_checkpoint_path
from resolute.pytorch.reducers import MetricReducer, Reducer
from resolute.pytorch.reducers import ReducerContext as _PyTorchReducerContext
from resolute.pytorch.reducers import reduce_values as _simple_reduce_metrics
from resolute.pytorch.schedulers import LRScheduler
from resolute.pytorch.trainer import Trainer
from resolute.pytorch.trial import PyTorchTrial
from resolute.pytorch.units import Batch, Epoch, TrainUnit

__all__ = [
    "Batch",
    "CheckpointLoadContext",
    "DataLoader",
    "Epoch",
    "LRScheduler",
    "MetricReducer",
    "PyTorchCallback",
    "PyTorchExperimentalContext",
    "PyTorchTrial",
    "PyTorchTrialContext",
    "Reducer",
    "TorchBatchProcessor",
    "TorchBatchProcessorContext",
    "TorchData",
    "TrainUnit",
    "Trainer",
    "_PyTorchReducerContext",
    "_simple_reduce_metrics",
    "adapt_batch_sampler",
    "data_length",
    "experimental",
    "init",
    "load_trial_from_checkpoint_path",
    "samplers",
    "to_device",
    "torch_batch_process",
]
