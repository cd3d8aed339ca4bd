"""A clock that stands still until a test moves it."""

from __future__ import annotations


class ManualClock:
    """Tells the time that it was told.

    Args:
        now: Seconds since 1970 to begin with.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def time(self) -> float:
        """Seconds since 1970."""
        return self._now

    def monotonic(self) -> float:
        """The same seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += seconds
