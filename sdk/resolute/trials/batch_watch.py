"""Measures how long a library's training waits for batches, by the library's hooks."""

from __future__ import annotations

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.trials.throughput import Throughput


class BatchWatch:
    """Measures each batch. Time between ``trained`` and the next ``ready`` does not count.

    Args:
        throughput: Receives the measurements.
        clock: Measures the time.
    """

    def __init__(self, throughput: Throughput, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._throughput, self._clock = throughput, clock
        self._ready_at = self._arrived_at = clock.monotonic()

    def ready(self) -> None:
        """Marks that training begins to wait for a batch."""
        self._ready_at = self._clock.monotonic()

    def arrived(self) -> None:
        """Marks that the batch has arrived."""
        self._arrived_at = self._clock.monotonic()

    def trained(self, batches: int = 1, *, knows_wait: bool = True) -> None:
        """Marks that the batch is trained and that training waits for the next one.

        Args:
            batches: How many were trained since ``ready``.
            knows_wait: Whether ``arrived`` was called once they were there.
        """
        now = self._clock.monotonic()
        waited = self._arrived_at - self._ready_at if knows_wait else None
        self._throughput.add(batches=batches, seconds=now - self._ready_at, waited=waited)
        self._ready_at = now
