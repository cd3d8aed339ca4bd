"""The base class of trials with DeepSpeed's engines."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from resolute.pytorch.data.loader import DataLoader
from resolute.pytorch.deepspeed.context import DeepSpeedTrialContext
from resolute.pytorch.trial.callbacks import PyTorchCallback
from resolute.trial_errors import InvalidCheckpointException


class DeepSpeedTrial(abc.ABC):
    """A trial with its engines, data and methods for batches. Derive a class that overrides methods."""

    trial_controller_class: ClassVar[Any] = None
    trial_context_class: ClassVar[type] = DeepSpeedTrialContext

    @abc.abstractmethod
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        """Creates engines with ``deepspeed.initialize()``, wrapped by ``context.wrap_model_engine()``.

        Args:
            context: What the platform offers; keep it.
        """

    @abc.abstractmethod
    def train_batch(self, dataloader_iter: Iterator[Any] | None, epoch_idx: int, batch_idx: int) -> Any:
        """Trains with one micro batch: forward, ``engine.backward(loss)`` and ``engine.step()``.

        It is called for each micro batch of a batch. With a pipeline, or after
        ``context.disable_auto_grad_accumulation()``, it is called once for each batch and trains all of it,
        as ``engine.train_batch(dataloader_iter)`` does.

        Args:
            dataloader_iter: Gives micro batches, not yet on the device; it never ends. None on ranks that
                need no data.
            epoch_idx: The epoch, from 0, over all runs of the trial.
            batch_idx: The batch, from 0, over all epochs and all runs of the trial.

        Returns:
            Metrics by name, or the loss as a tensor.
        """

    @abc.abstractmethod
    def evaluate_batch(self, dataloader_iter: Iterator[Any] | None, batch_idx: int) -> dict[str, Any]:
        """Evaluates one micro batch; with a pipeline one batch, as ``engine.eval_batch(iter)`` does.

        Args:
            dataloader_iter: Gives micro batches, not yet on the device. None on ranks that need no data.
            batch_idx: How often it was called before in this validation.

        Returns:
            Metrics by name.
        """

    @abc.abstractmethod
    def build_training_data_loader(self) -> DataLoader | None:
        """Returns the loader of training data.

        Its batches have ``context.train_micro_batch_size_per_gpu`` records.
        """

    @abc.abstractmethod
    def build_validation_data_loader(self) -> DataLoader | None:
        """Returns the loader of validation data, in micro batches."""

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Returns callbacks by name. Their state is kept in checkpoints by that name, for each rank."""
        return {}

    def save(self, context: DeepSpeedTrialContext, path: Path) -> None:
        """Saves this rank's part of the engines in a checkpoint; called on every rank.

        Args:
            context: The trial's context.
            path: Directory of the checkpoint.
        """
        for number, engine in enumerate(context.models):
            engine.save_checkpoint(str(path), tag=_tag(number))

    def load(self, context: DeepSpeedTrialContext, load_path: Path) -> None:
        """Restores this rank's part of the engines from a checkpoint; called on every rank.

        Args:
            context: The trial's context.
            load_path: Directory of the checkpoint, with the files of all ranks.

        Raises:
            InvalidCheckpointException: There is no such engine in it.
        """
        for number, engine in enumerate(context.models):
            loaded, _ = engine.load_checkpoint(str(load_path), tag=_tag(number))
            if loaded is None:
                raise InvalidCheckpointException(
                    f"DeepSpeed found no state of engine {number} in {load_path}: the checkpoint is of "
                    "another trial, or of another number of ranks"
                )


def _tag(number: int) -> str:
    return f"model{number}"
