"""Trains up to a step, with the work around every batch that all kinds of trials share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import Callbacks
from resolute.trials.counters import Progress


class BatchTrainer(Protocol):
    """Trains the batches of one kind of trial."""

    @property
    def waited_seconds(self) -> float:
        """Seconds for which it has waited for batches so far."""

    def train(self, step: int, epoch: int) -> None:
        """Trains one batch and collects its metrics.

        Args:
            step: Number of the batch, from 0, over all runs of the trial.
            epoch: Number of its epoch, from 0.
        """

    def close(self) -> None:
        """Ends the workers of the loader."""


class SegmentTrainer:
    """Trains up to a step.

    Args:
        batches: Trains a batch.
        context: The trial's context.
        callbacks: Its callbacks.
        progress: The counters of training, which are updated.
    """

    def __init__(
        self, batches: BatchTrainer, context: TrialContext, *, callbacks: Callbacks, progress: Progress
    ) -> None:
        self._batches = batches
        self._context = context
        self._callbacks = callbacks
        self._progress = progress

    @property
    def waited_seconds(self) -> float:
        """Seconds for which it has waited for batches so far."""
        return self._batches.waited_seconds

    def train_until(self, end: int, *, interrupted: Callable[[int], bool]) -> bool:
        """Trains up to a step.

        Args:
            end: The step.
            interrupted: Asked after every step but the last whether to stop there.

        Returns:
            Whether it got there.
        """
        for model in self._context.models:
            model.train()
        progress = self._progress
        while progress.step < end:
            self._train_batch(progress.step)
            progress.step += 1
            if progress.step < end and interrupted(progress.step):
                return False
        return True

    def _train_batch(self, step: int) -> None:
        context, length = self._context, self._progress.epoch_length
        context._batch_idx = step
        epoch, within = divmod(step, length)
        if within == 0:
            self._callbacks.start_epoch(epoch)
        self._batches.train(step, epoch)
        if context.profiler is not None:
            context.profiler.step()
        if within == length - 1:
            for callback in self._callbacks:
                callback.on_training_epoch_end(epoch)
