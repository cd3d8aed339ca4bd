"""Trains and evaluates the batches of a ``DeepSpeedTrial``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from resolute.pytorch.data.skipping import SkippedBatches
from resolute.pytorch.deepspeed.context import DeepSpeedTrialContext
from resolute.pytorch.deepspeed.trial import DeepSpeedTrial
from resolute.pytorch.metrics.aggregation import Metrics, TrainingMetrics
from resolute.pytorch.training.batches import RepeatingLoader
from resolute.pytorch.training.validation import evaluate_and_reduce
from resolute.pytorch.trial.callbacks import Callbacks

_NOTHING: dict[str, Any] = {}
"""The metrics of a rank that has none to report."""


class EngineBatchTrainer:
    """Trains batches; a batch consists of several micro batches.

    Args:
        trial: The trial.
        context: Its context.
        loader: Yields micro batches; None on ranks that need no data.
        metrics: Receives the metrics that the trial returns.
    """

    def __init__(
        self,
        trial: DeepSpeedTrial,
        context: DeepSpeedTrialContext,
        *,
        loader: Iterable[Any] | None,
        metrics: TrainingMetrics,
    ) -> None:
        self._trial = trial
        self._batches = None if loader is None else RepeatingLoader(loader)
        self._metrics = metrics
        self._reports = context._mpu.should_report_metrics
        self._calls = context._calls_per_batch
        # A pipeline counts batches, and trains whole ones only.
        self._counting = None if context.use_pipeline_parallel else context.models[0]
        self._micro_batches = context.num_micro_batches_per_slot
        self._skipped = SkippedBatches.of(context._core)

    @property
    def waited_seconds(self) -> float:
        """Seconds for which it has waited for micro batches so far."""
        return 0.0 if self._batches is None else self._batches.waited_seconds

    def train(self, step: int, epoch: int) -> None:
        """Trains one batch and collects the metrics of each call, unless the batch is skipped.

        Raises:
            AssertionError: The trial did not step its engine with every micro batch.
        """
        if step in self._skipped:
            if self._batches is not None:
                for _ in range(self._micro_batches):
                    next(self._batches)
            return
        for _ in range(self._calls):
            returned = self._trial.train_batch(self._batches, epoch, step)
            self._metrics.add(returned if self._reports else _NOTHING)
        if self._counting is not None and self._counting.micro_steps % self._micro_batches:
            raise AssertionError(
                f"after batch {step} the engine is within a batch: train_batch() must call backward() and "
                f"step() of the engine for each of the {self._micro_batches} micro batches of a batch"
            )

    def close(self) -> None:
        """Ends the workers of the loader."""
        if self._batches is not None:
            self._batches.close()


class EngineEvaluator:
    """Evaluates a ``DeepSpeedTrial``.

    Args:
        trial: The trial.
        context: Its context.
        callbacks: Its callbacks.
        loader: Yields micro batches; None on ranks that need no data.
        calls: Number of calls of ``evaluate_batch``: the same on every rank, because engines exchange
            weights.
    """

    def __init__(
        self,
        trial: DeepSpeedTrial,
        context: DeepSpeedTrialContext,
        *,
        callbacks: Callbacks,
        loader: Iterable[Any] | None,
        calls: int,
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = callbacks
        self._loader = loader
        self._calls = calls

    def evaluate(self) -> Metrics:
        """Returns means over batches and ranks; every rank calls it."""
        return evaluate_and_reduce(self._each(), self._context, callbacks=self._callbacks)

    def _each(self) -> Iterator[Any]:
        batches = None if self._loader is None else iter(self._loader)
        for number in range(self._calls):
            returned = self._trial.evaluate_batch(batches, number)
            if self._context._mpu.should_report_metrics:
                yield returned
