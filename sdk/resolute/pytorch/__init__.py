"""Training with PyTorch: you write a ``PyTorchTrial``, and a ``Trainer`` runs it.

::

    with pytorch.init() as context:
        trainer = pytorch.Trainer(MyTrial(context), context)
        trainer.fit(max_length=pytorch.Epoch(10), validation_period=pytorch.Epoch(1))
"""

from resolute.pytorch import experimental
from resolute.pytorch.batch_processing import (
    TorchBatchProcessor,
    TorchBatchProcessorContext,
    torch_batch_process,
)
from resolute.pytorch.checkpointing.loading import CheckpointLoadContext, load_trial_from_checkpoint_path
from resolute.pytorch.data import samplers
from resolute.pytorch.data.loader import DataLoader, TorchData, adapt_batch_sampler, data_length, to_device
from resolute.pytorch.metrics.reducers import MetricReducer, Reducer
from resolute.pytorch.metrics.reducers import ReducerContext as _PyTorchReducerContext
from resolute.pytorch.metrics.reducers import reduce_values as _simple_reduce_metrics
from resolute.pytorch.training.initialization import init
from resolute.pytorch.training.trainer import Trainer
from resolute.pytorch.trial.callbacks import PyTorchCallback
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.definition import PyTorchTrial
from resolute.pytorch.trial.experimental_context import PyTorchExperimentalContext
from resolute.pytorch.trial.lr_scheduler import LRScheduler
from resolute.pytorch.trial.reset import reset_parameters
from resolute.trials.units import Batch, Epoch, TrainUnit

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
    "reset_parameters",
    "samplers",
    "to_device",
    "torch_batch_process",
]
