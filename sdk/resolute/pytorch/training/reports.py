"""Reports a trial's metrics to the platform, to TensorBoard and to callbacks."""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Mapping
from typing import Any

from resolute.contracts.spool.format import Row, Schema
from resolute.core.tensorboard.events import EventFile
from resolute.pytorch.metrics.aggregation import Metrics, TrainingMetrics, reportable
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import Callbacks
from resolute.trials.counters import Progress

_log = logging.getLogger("resolute.pytorch")


class MetricReporter:
    """Reports metrics.

    Args:
        context: The trial's context.
        callbacks: Its callbacks.
        metrics: Metrics of training since the last report.
        count_progress: Whether ``batches`` and ``epochs`` are among the metrics, for searches whose
            lengths are values of a metric.
    """

    def __init__(
        self,
        context: TrialContext,
        *,
        callbacks: Callbacks,
        metrics: TrainingMetrics,
        count_progress: bool,
    ) -> None:
        self._context = context
        self._core = context._core
        self._callbacks = callbacks
        self._metrics = metrics
        self._count_progress = count_progress
        self._events: EventFile | None = None
        self._warned = False

    def report_training(self, progress: Progress) -> None:
        """Reports the training metrics since the last report, if there are any; every rank calls it."""
        if not self._metrics.batches:
            return
        averages, batches = self._metrics.take()
        averages = {**averages, **self._context.reduce_metrics(for_training=True)}
        self._context.reset_reducers(for_training=True)
        averages = reportable(averages)
        batches = [reportable(batch) for batch in batches]
        if self._context.distributed.rank == 0:
            counted = self._counted(averages, progress)
            on_cluster = self._core.info is not None
            self._core.train.report_training_metrics(
                steps_completed=progress.step, metrics=counted, batch_metrics=batches if on_cluster else None
            )
            self._write_events("training", averages, progress.step)
        for callback in self._callbacks:
            callback.on_training_workload_end(averages, batches)

    def report_validation(self, metrics: Metrics, progress: Progress) -> None:
        """Reports the metrics of a validation; only the chief calls it."""
        if not metrics and not self._warned:
            self._warned = True
            _log.warning(
                "a validation has no metric, so no checkpoint can be the best: return some from "
                "evaluate_batch() or evaluate_full_dataset(), such as a loss, or wrap a reducer"
            )
        self._core.train.report_validation_metrics(
            steps_completed=progress.step, metrics=self._counted(metrics, progress)
        )
        self._write_events("validation", metrics, progress.step)

    def upload_tensorboard(self) -> None:
        """Uploads the TensorBoard files that were written; every rank calls it."""
        writer = self._context._writer
        if writer is not None:
            writer.flush()
        if writer is not None or self._events is not None or self._context.profiler is not None:
            rank = self._context.distributed.rank
            self._core.train.upload_tensorboard_files(
                mangler=lambda path, _: path if rank == 0 else path.with_name(f"{path.name}.rank{rank}")
            )

    def close(self) -> None:
        """Closes the event file."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def _counted(self, metrics: Metrics, progress: Progress) -> Metrics:
        if not self._count_progress:
            return metrics
        return {**metrics, "batches": progress.step, "epochs": progress.step / progress.epoch_length}

    def _write_events(self, group: str, metrics: Mapping[str, Any], step: int) -> None:
        if not self._context.get_enable_tensorboard_logging():
            return
        if self._events is None:
            if importlib.util.find_spec("tensorboard") is None:
                return
            self._events = EventFile(self._context.get_tensorboard_path())
        numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, (int, float))}
        schema = Schema(group, tuple(numbers))
        self._events.write([Row(schema, step, time.time(), tuple(numbers.values()))])
