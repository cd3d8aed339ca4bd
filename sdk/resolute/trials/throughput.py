"""How fast training is, and how much of it waits for data."""

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
    """Trains batches, for which it waits."""

    @property
    def waited_seconds(self) -> float:
        """Seconds for which it has waited for batches so far."""


class Throughput:
    """Measures training between two reports: neither validations nor checkpoints count.

    ``data_wait`` is the share of that time, from 0 to 1, for which the process waited for the next batch. A
    GPU may still have been busy with earlier batches then.

    Args:
        context: Where it reports.
        segments: What trains.
        cost: Says what a batch costs.
        clock: Measures the time.
    """

    def __init__(
        self,
        context: core.Context,
        segments: Waiting,
        *,
        cost: Callable[[], BatchCost] = BatchCost,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._train = context.train
        self._slots = context.distributed.size
        self._cost = cost
        self._segments = segments
        self._clock = clock
        trial = trial_of(context.info)
        self._reports = trial is not None and context.distributed.rank == 0
        size = trial.hparams.get("global_batch_size") if trial is not None else None
        self._batch_size = size if isinstance(size, int) else None
        self._seconds = self._waited = 0.0
        self._batches = 0

    @contextmanager
    def measured(self, progress: Progress) -> Iterator[None]:
        """Measures the training that is done in the block."""
        began, waited, step = self._clock.monotonic(), self._segments.waited_seconds, progress.step
        yield
        self._seconds += self._clock.monotonic() - began
        self._waited += self._segments.waited_seconds - waited
        self._batches += progress.step - step

    def report(self, progress: Progress) -> None:
        """Reports what was measured since the last report, on the chief of a trial of a cluster."""
        if self._reports and self._batches and self._seconds > 0:
            rate = self._batches / self._seconds
            metrics = {"data_wait": self._waited / self._seconds, "batches_per_second": rate}
            if self._batch_size is not None:
                metrics["samples_per_second"] = rate * self._batch_size
            metrics |= self._cost().rates(rate, slots=self._slots)
            self._train.report_metrics(GROUP, steps_completed=progress.step, metrics=metrics)
        self._seconds = self._waited = 0.0
        self._batches = 0
