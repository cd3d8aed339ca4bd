"""Trains a batch of a ``PyTorchTrial``. This code runs for every batch, so it must be fast."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

from resolute.pytorch.backends.exchange_options import naming_ddp_options
from resolute.pytorch.data.skipping import SkippedBatches
from resolute.pytorch.metrics.aggregation import TrainingMetrics
from resolute.pytorch.training.automatic_steps import AutomaticSteps
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.definition import PyTorchTrial

_END = object()
_PASSES = 2
"""A loader that goes on from the end of its pass has nothing left of it, and all of the next."""


class RepeatingLoader(Iterator[Any]):
    """The batches of a loader without end. The loader is started at the first batch, and again at its end.

    Args:
        loader: The loader.
    """

    def __init__(self, loader: Iterable[Any]) -> None:
        self._loader = loader
        self._batches: Iterator[Any] = iter(())
        self.waited_seconds = 0.0
        """Seconds for which the loader was waited for so far."""

    def __next__(self) -> Any:
        began = time.perf_counter()
        try:
            return self._next()
        finally:
            self.waited_seconds += time.perf_counter() - began

    def _next(self) -> Any:
        batch = next(self._batches, _END)
        for _ in range(_PASSES):
            if batch is not _END:
                return batch
            self._batches = iter(self._loader)
            batch = next(self._batches, _END)
        if batch is not _END:
            return batch
        raise RuntimeError(
            "the training loader is empty: build_training_data_loader() must return at least one batch "
            "for every rank; a batch size above the number of records with drop_last leaves none"
        )

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
        metrics: Receives the metrics that the trial returns.
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
        self._steps = AutomaticSteps(trial, context)
        self._context = context
        self._batches = RepeatingLoader(loader)
        self._epoch_length = epoch_length
        self._metrics = metrics
        self._skipped = SkippedBatches.of(context._core, together=context._aggregation_frequency)

    @property
    def waited_seconds(self) -> float:
        """Seconds for which it has waited for batches so far."""
        return self._batches.waited_seconds

    def train(self, step: int, epoch: int) -> None:
        """Trains one batch and collects its metrics, unless the batch is skipped."""
        context = self._context
        batch = next(self._batches)
        if step in self._skipped:
            self._step_schedulers(step)
            return
        if context.experimental.auto_to_device:
            batch = context.to_device(batch)
        context._precision.begin_batch()
        with self._sync_block(step), naming_ddp_options():
            returned = self._steps.train(batch, epoch, step)
            context._backend.finish_batch(context.models)
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
