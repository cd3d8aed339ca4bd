"""The training speed, and the share of time spent waiting for data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from resolute import core
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.info import trial_of
from resolute.runtime.batch_cost import BatchCost
from resolute.trials.counters import Progress

GROUP = "throughput"
"""The group of its metrics."""


class Waiting(Protocol):
    """A batch trainer that measures how long it waits for batches."""

    @property
    def waited_seconds(self) -> float:
        """Seconds for which it has waited for batches so far."""


class Throughput:
    """Measures the training time between two reports. Validations and checkpoints do not count.

    ``data_wait`` is the share of that time, from 0 to 1, for which the process waited for the next batch. A
    GPU may have been busy with earlier batches during that wait.

    Args:
        context: The Core API, to which it reports.
        cost: Returns the cost of a batch.
        clock: Measures the time.

    Attributes:
        batch_size: Number of records of a batch over all slots; None if unknown. The default is the
            hyperparameter ``global_batch_size``.
    """

    def __init__(
        self,
        context: core.Context,
        *,
        cost: Callable[[], BatchCost] = BatchCost,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._train = context.train
        self._slots = context.distributed.size
        self._cost = cost
        self._clock = clock
        trial = trial_of(context.info)
        self._reports = trial is not None and context.distributed.rank == 0
        size = trial.hparams.get("global_batch_size") if trial is not None else None
        self.batch_size = size if isinstance(size, int) else None
        self._seconds = 0.0
        self._waited: float | None = 0.0
        self._batches = 0

    @contextmanager
    def measured(self, progress: Progress, waiting: Waiting) -> Iterator[None]:
        """Measures the training within the block."""
        began, waited, step = self._clock.monotonic(), waiting.waited_seconds, progress.step
        yield
        self.add(
            batches=progress.step - step,
            seconds=self._clock.monotonic() - began,
            waited=waiting.waited_seconds - waited,
        )

    def add(self, *, batches: int, seconds: float, waited: float | None) -> None:
        """Adds trained batches to the measurement.

        Args:
            batches: How many.
            seconds: How long it took to get and to train them.
            waited: Of that, how long training waited for them; None if that is not known.
        """
        self._batches += batches
        self._seconds += seconds
        self._waited = None if self._waited is None or waited is None else self._waited + waited

    def report(self, step: int) -> None:
        """Reports the throughput since the last report, on the chief of a trial on a cluster."""
        if self._reports and self._batches and self._seconds > 0:
            rate = self._batches / self._seconds
            metrics = {"batches_per_second": rate}
            if self._waited is not None:
                metrics["data_wait"] = self._waited / self._seconds
            if self.batch_size is not None:
                metrics["samples_per_second"] = rate * self.batch_size
            metrics |= self._cost().rates(rate, slots=self._slots)
            self._train.report_metrics(GROUP, steps_completed=step, metrics=metrics)
        self._seconds = self._waited = 0.0
        self._batches = 0
