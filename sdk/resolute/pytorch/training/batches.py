"""How a ``PyTorchTrial`` trains a batch: the part that runs for every batch, and so must be fast."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from resolute.pytorch.metrics.aggregation import TrainingMetrics
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.definition import PyTorchTrial


class RepeatingLoader(Iterator[Any]):
    """The batches of a loader, begun when the first is wanted, and again when it ends.

    Args:
        loader: The loader.
    """

    def __init__(self, loader: Iterable[Any]) -> None:
        self._loader = loader
        self._batches: Iterator[Any] = iter(())

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except StopIteration:
            self._batches = iter(self._loader)
        try:
            return next(self._batches)
        except StopIteration:
            raise RuntimeError(
                "the training loader is empty: build_training_data_loader() must return at least one batch "
                "for every rank; a batch size above the number of records with drop_last leaves none"
            ) from None

    def close(self) -> None:
        """Ends the workers of the loader."""
        self._batches = iter(())


class TrialBatchTrainer:
    """Trains the batches of a ``PyTorchTrial``.

    Args:
        trial: The trial.
        context: Its context.
        loader: Yields batches.
        epoch_length: Batches of an epoch.
        metrics: Takes what the trial returns.
    """

    def __init__(
        self,
        trial: PyTorchTrial,
        context: PyTorchTrialContext,
        *,
        loader: Iterable[Any],
        epoch_length: int,
        metrics: TrainingMetrics,
    ) -> None:
        self._trial = trial
        self._context = context
        self._batches = RepeatingLoader(loader)
        self._epoch_length = epoch_length
        self._metrics = metrics

    def train(self, step: int, epoch: int) -> None:
        """Trains one batch and keeps its metrics."""
        context = self._context
        batch = next(self._batches)
        if context.experimental.auto_to_device:
            batch = context.to_device(batch)
        context._precision.begin_batch()
        with self._sync_block(step):
            returned = self._trial.train_batch(batch, epoch, step)
        context._precision.end_batch()
        self._step_schedulers(step)
        self._metrics.add(returned)

    def close(self) -> None:
        """Ends the workers of the loader."""
        self._batches.close()

    def _sync_block(self, step: int) -> contextlib.AbstractContextManager[object]:
        frequency = self._context._aggregation_frequency
        if frequency == 1 or (step + 1) % frequency == 0:
            return _WITH_SYNC
        return self._context._backend.without_sync(self._context.models)

    def _step_schedulers(self, step: int) -> None:
        for scheduler in self._context.lr_schedulers:
            times = scheduler.steps_after(
                step,
                epoch_length=self._epoch_length,
                aggregation_frequency=self._context._aggregation_frequency,
            )
            for _ in range(times):
                scheduler.step()


_WITH_SYNC = contextlib.nullcontext()
