"""Writes the metrics of trials as TensorBoard events, for scripts of older releases."""

from __future__ import annotations

import importlib
import importlib.util
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, cast

from resolute.contracts.clock import SYSTEM_CLOCK, Clock

_RESET_SECONDS = 1.0


class MetricWriter(ABC):
    """Writes numbers."""

    @abstractmethod
    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Writes one number."""

    @abstractmethod
    def reset(self) -> None:
        """Ends the present file; what comes later goes into another."""

    @abstractmethod
    def flush(self) -> None:
        """Writes what is buffered."""


class BatchMetricWriter:
    """Writes the metrics of steps and validations below ``Determined/``.

    Args:
        writer: Writes the events.
        clock: Clock that limits flushes of the file to one a second.
    """

    def __init__(self, writer: MetricWriter, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.writer = writer
        self._clock = clock
        self._reset_at: float | None = None

    def on_train_step_end(
        self,
        steps_completed: int,
        metrics: Mapping[str, Any],
        batch_metrics: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Writes the metrics of single batches, and those averages that no batch has.

        Args:
            steps_completed: Batches trained so far.
            metrics: Averages.
            batch_metrics: Metrics of the last batches, in their order.
        """
        batches = batch_metrics or ()
        for index, batch in enumerate(batches):
            self._write(batch, steps_completed - len(batches) + index)
        in_batches = {name for batch in batches for name in batch}
        rest = {name: value for name, value in metrics.items() if name not in in_batches}
        self._write(rest, steps_completed)
        self._show()

    def on_validation_step_end(self, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Writes metrics of a validation, each under a name that begins with ``val``."""
        named = {name if name.startswith("val") else f"val_{name}": value for name, value in metrics.items()}
        self._write(named, steps_completed)
        self._show()

    def _write(self, metrics: Mapping[str, Any], step: int) -> None:
        for name, value in metrics.items():
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                continue
            self.writer.add_scalar(f"Determined/{name}", float(value), step)

    def _show(self) -> None:
        now = self._clock.monotonic()
        if self._reset_at is None or now - self._reset_at >= _RESET_SECONDS:
            self._reset_at = now
            self.writer.reset()
        else:
            self.writer.flush()


def get_metric_writer() -> MetricWriter:
    """Returns a writer: TensorBoard's own where TensorFlow is installed, else torch's."""
    name, kind = (
        ("tensorflow", "TFWriter") if importlib.util.find_spec("tensorflow") else ("pytorch", "TorchWriter")
    )
    module = importlib.import_module(f"resolute.tensorboard.metric_writers.{name}")
    return cast("MetricWriter", getattr(module, kind)())
