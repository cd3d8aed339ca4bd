"""Clocks that are injected, so that tests can control the time, and due times by both of them."""

from __future__ import annotations

import time
from typing import Protocol

_TOLERANCE_SECONDS = 60.0
"""How far a clock may be set back before that counts: synchronisation corrects a little all the time."""


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


class DueTime:
    """A due time that is reached as soon as either clock says so, on a machine that may be suspended.

    The monotonic clock stops while the machine is suspended; the wall clock may be set. Tokens expire by the
    wall clock, so their renewal must follow both. If the wall clock was set back, the time is reached at
    once: a token issued before has an issue time in the future.

    Args:
        clock: Provides both clocks.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uptime = clock.monotonic()
        self._began = self._until = clock.time()

    def set(self, seconds: float) -> None:
        """Lets it be due after some seconds from now."""
        self._uptime = self._clock.monotonic() + seconds
        self._began = self._clock.time()
        self._until = self._began + seconds

    @property
    def reached(self) -> bool:
        """Whether it is due."""
        now = self._clock.time()
        return (
            self._clock.monotonic() >= self._uptime
            or now >= self._until
            or now < self._began - _TOLERANCE_SECONDS
        )

    @property
    def seconds_left(self) -> float:
        """Seconds until it is due at the latest, unless a clock jumps; zero when it is."""
        return 0.0 if self.reached else self._uptime - self._clock.monotonic()
