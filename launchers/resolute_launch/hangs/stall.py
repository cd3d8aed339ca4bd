"""The time since the last sign of life of a run, and its limit."""

from __future__ import annotations

from collections import deque

from resolute.contracts.clock import Clock

LEAST_SECONDS = 600.0
"""Seconds for which a run may stand still at least, where its config does not say how long."""
_TIMES = 10.0
"""So many times the usual pause between two signs of life is no pause any more."""
_SHARE = 0.99
_KEPT_PAUSES = 1000
_FROZEN_SECONDS = 5.0
"""So much later than due a look can only come where this process itself stood still."""


class Stall:
    """Measures the time without a sign of life. Time for which the whole machine stood still does not count.

    Args:
        after: Seconds without a sign of life after which a run hangs; None to derive them from the run's
            earlier pauses.
        interval: Seconds between two checks.
        clock: Measures the time.
    """

    def __init__(self, after: float | None, *, interval: float, clock: Clock) -> None:
        self._after, self._interval, self._clock = after, interval, clock
        self._looked = self._moved = clock.monotonic()
        self._pauses: deque[float] = deque(maxlen=_KEPT_PAUSES)

    @property
    def limit(self) -> float:
        """Seconds without a sign of life after which a run hangs."""
        if self._after is not None:
            return self._after
        if not self._pauses:
            return LEAST_SECONDS
        in_order = sorted(self._pauses)
        return max(LEAST_SECONDS, _TIMES * in_order[min(int(_SHARE * len(in_order)), len(in_order) - 1)])

    @property
    def seconds(self) -> float:
        """Seconds since the last sign of life, as of the last look."""
        return self._looked - self._moved

    def skip(self) -> None:
        """Counts the time since the last look, which the caller itself needed; it is no freeze."""
        self._looked = self._clock.monotonic()

    def look(self, *, moved: bool) -> float:
        """Takes note of a look, and of whether there was a sign of life since the one before.

        Returns:
            Seconds without one; zero if there was.
        """
        now = self._clock.monotonic()
        if now - self._looked > self._interval + _FROZEN_SECONDS:
            self._moved += now - self._looked
        self._looked = now
        if moved:
            self._pauses.append(now - self._moved)
            self._moved = now
        return now - self._moved
