"""When processes that were asked to leave are made to."""

from __future__ import annotations

from enum import Enum

from resolute.clock import Clock


class Step(Enum):
    """What is to be done to the processes now."""

    NONE = "none"
    TERMINATE = "terminate"
    KILL = "kill"


class Escalation:
    """Deadlines of a run's processes: first SIGTERM, then SIGKILL. Of several demands the earliest counts.

    Args:
        clock: Decides what is due.
        grace: Seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, clock: Clock, *, grace: float) -> None:
        self._clock = clock
        self._grace = grace
        self._terminate_at: float | None = None
        self._kill_at: float | None = None

    @property
    def demanded(self) -> bool:
        """Whether the end of the processes was asked for, now or for later."""
        return self._terminate_at is not None or self._kill_at is not None

    def terminate_in(self, seconds: float) -> None:
        """Asks for SIGTERM after some seconds, and for SIGKILL when the grace after it is over."""
        at = self._clock.monotonic() + seconds
        self._terminate_at = _earlier(self._terminate_at, at)
        self._kill_at = _earlier(self._kill_at, at + self._grace)

    def kill_in(self, seconds: float) -> None:
        """Asks for SIGKILL after some seconds."""
        self._kill_at = _earlier(self._kill_at, self._clock.monotonic() + seconds)

    def due(self) -> Step:
        """Returns what is due now; each step once, and nothing after SIGKILL."""
        now = self._clock.monotonic()
        if self._kill_at is not None and now >= self._kill_at:
            self._terminate_at, self._kill_at = None, float("inf")
            return Step.KILL
        if self._terminate_at is not None and now >= self._terminate_at:
            self._terminate_at = None
            return Step.TERMINATE
        return Step.NONE

    def seconds_until_due(self) -> float:
        """Seconds until ``due`` has something; infinite without a demand."""
        waiting = [at for at in (self._terminate_at, self._kill_at) if at is not None]
        return max(min(waiting) - self._clock.monotonic(), 0.0) if waiting else float("inf")


def _earlier(known: float | None, new: float) -> float:
    return new if known is None else min(known, new)
