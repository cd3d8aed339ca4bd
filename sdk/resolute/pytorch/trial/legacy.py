"""Trials in the style of the first releases: the platform creates and steps the model and the optimizer."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from resolute.pytorch.metrics.reducers import Reducer
from resolute.pytorch.trial.callbacks import PyTorchCallback
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.definition import PyTorchTrial
from resolute.pytorch.trial.lr_scheduler import LRScheduler


def is_legacy_trial(trial: Any) -> bool:
    """Whether a trial, or its class, is written in the style of the first releases."""
    train_batch = getattr(trial, "train_batch", None)
    return (
        callable(getattr(trial, "build_model", None))
        and callable(getattr(trial, "optimizer", None))
        and train_batch is not None
        and "model" in inspect.signature(train_batch).parameters
    )


def adapt_trial(trial: Any, context: PyTorchTrialContext) -> PyTorchTrial:
    """Returns a trial with the current interface; adapts one in the style of the first releases.

    Raises:
        TypeError: It is no trial.
    """
    if is_legacy_trial(trial):
        whole = type(trial).evaluate_full_dataset is not PyTorchTrial.evaluate_full_dataset
        adapter = _LegacyFullDatasetTrial if whole else _LegacyBatchTrial
        return adapter(trial, context)
    if not isinstance(trial, PyTorchTrial):
        raise TypeError(
            f"a {type(trial).__name__} is not a trial: its class must be derived from "
            "resolute.pytorch.PyTorchTrial"
        )
    return trial


class _LegacyTrial(PyTorchTrial):
    """Creates, wraps and steps the model and optimizer that such a trial describes.

    Args:
        trial: The trial.
        context: Its context.
    """

    def __init__(self, trial: Any, context: PyTorchTrialContext) -> None:
        self.trial = trial
        self.context = context
        self.model = context.wrap_model(trial.build_model())
        self.optimizer = context.wrap_optimizer(trial.optimizer(self.model))
        create = getattr(trial, "create_lr_scheduler", None)
        scheduler = create(self.optimizer) if create is not None else None
        if isinstance(scheduler, LRScheduler):
            context.wrap_lr_scheduler(scheduler.scheduler, scheduler._step_mode, scheduler._frequency)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        returned = self.trial.train_batch(batch, self.model, epoch_idx, batch_idx)
        loss = returned if isinstance(returned, torch.Tensor) else returned["loss"]
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return returned

    def build_training_data_loader(self) -> Any:
        return self.trial.build_training_data_loader()

    def build_validation_data_loader(self) -> Any:
        return self.trial.build_validation_data_loader()

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        callbacks: dict[str, PyTorchCallback] = self.trial.build_callbacks()
        return callbacks

    def evaluation_reducer(self) -> Reducer | dict[str, Reducer]:
        reducer: Reducer | dict[str, Reducer] = self.trial.evaluation_reducer()
        return reducer


class _LegacyBatchTrial(_LegacyTrial):
    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        metrics: dict[str, Any] = self.trial.evaluate_batch(batch, self.model)
        return metrics


class _LegacyFullDatasetTrial(_LegacyTrial):
    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        metrics: dict[str, Any] = self.trial.evaluate_full_dataset(data_loader, self.model)
        return metrics
