"""Clocks that are injected, so that tests can control the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Returns the time."""

    def time(self) -> float:
        """Seconds since 1970, UTC. For what people read and for what is stored."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point, never going back. For deadlines."""


class SystemClock:
    """The machine's own clocks."""

    def time(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since an arbitrary point."""
        return time.monotonic()


SYSTEM_CLOCK = SystemClock()
"""The clock of everything that was not handed another."""
