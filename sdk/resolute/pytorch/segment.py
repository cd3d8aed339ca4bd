"""Training of batch after batch: the part that runs for every batch, and so the part that must be fast."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from resolute.pytorch.callbacks import Callbacks
from resolute.pytorch.context import PyTorchTrialContext
from resolute.pytorch.metrics import TrainingMetrics
from resolute.pytorch.progress import Progress
from resolute.pytorch.trial import PyTorchTrial


class SegmentTrainer:
    """Trains until a step.

    Args:
        trial: What trains a batch.
        context: Its context.
        callbacks: Its callbacks.
        loader: Yields batches; begun anew when it ends.
        progress: How far training is; kept up to date.
        metrics: Takes what the trial returns.
    """

    def __init__(
        self,
        trial: PyTorchTrial,
        context: PyTorchTrialContext,
        *,
        callbacks: Callbacks,
        loader: Iterable[Any],
        progress: Progress,
        metrics: TrainingMetrics,
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = callbacks
        self._loader = loader
        self._batches: Iterator[Any] = iter(loader)
        self._progress = progress
        self._metrics = metrics

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

    def close(self) -> None:
        """Ends the workers of the loader."""
        self._batches = iter(())

    def _train_batch(self, step: int) -> None:
        context, length = self._context, self._progress.epoch_length
        context._batch_idx = step
        epoch, within = divmod(step, length)
        if within == 0:
            self._callbacks.start_epoch(epoch)
        batch = self._next_batch()
        if context.experimental.auto_to_device:
            batch = context.to_device(batch)
        context._precision.begin_batch()
        with self._exchange(step):
            returned = self._trial.train_batch(batch, epoch, step)
        context._precision.end_batch()
        self._step_schedulers(step)
        self._metrics.add(returned)
        if context.profiler is not None:
            context.profiler.step()
        if within == length - 1:
            for callback in self._callbacks:
                callback.on_training_epoch_end(epoch)

    def _next_batch(self) -> Any:
        try:
            return next(self._batches)
        except StopIteration:
            self._batches = iter(self._loader)
        try:
            return next(self._batches)
        except StopIteration:
            raise RuntimeError(
                "the training loader is empty: build_training_data_loader() must return at least one batch "
                "for "
                "every rank; a batch size above the number of records with drop_last leaves none"
            ) from None

    def _exchange(self, step: int) -> contextlib.AbstractContextManager[object]:
        frequency = self._context._aggregation_frequency
        if frequency == 1 or (step + 1) % frequency == 0:
            return _EXCHANGED
        return self._context._backend.keeping_local(self._context.models)

    def _step_schedulers(self, step: int) -> None:
        for scheduler in self._context.lr_schedulers:
            times = scheduler.steps_after(
                step,
                epoch_length=self._progress.epoch_length,
                aggregation_frequency=self._context._aggregation_frequency,
            )
            for _ in range(times):
                scheduler.step()


_EXCHANGED = contextlib.nullcontext()
