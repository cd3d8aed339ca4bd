"""The steps from a request to exit to SIGKILL."""

from __future__ import annotations

from enum import Enum

from resolute.contracts.clock import Clock


class ShutdownStep(Enum):
    """The next action on the processes."""

    NONE = "none"
    TERMINATE = "terminate"
    KILL = "kill"


class ShutdownSequence:
    """The deadlines of a run's processes: SIGTERM, then SIGKILL. Of several requests the earliest counts.

    Args:
        clock: Clock for the deadlines.
        grace: Seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, clock: Clock, *, grace: float) -> None:
        self._clock = clock
        self._grace = grace
        self._terminate_at: float | None = None
        self._kill_at: float | None = None
        self._terminated = False
        self._killed = False

    def terminate_in(self, seconds: float) -> None:
        """Asks for SIGTERM after some seconds, and for SIGKILL when the grace after it is over."""
        if not self._terminated:
            self._terminate_at = _earlier(self._terminate_at, self._clock.monotonic() + seconds)
        self.kill_in(seconds + self._grace)

    def kill_in(self, seconds: float) -> None:
        """Asks for SIGKILL after some seconds."""
        if not self._killed:
            self._kill_at = _earlier(self._kill_at, self._clock.monotonic() + seconds)

    def due(self) -> ShutdownStep:
        """Returns what is due now; each step once, and nothing after SIGKILL."""
        now = self._clock.monotonic()
        if self._kill_at is not None and now >= self._kill_at:
            self._terminate_at = self._kill_at = None
            self._terminated = self._killed = True
            return ShutdownStep.KILL
        if self._terminate_at is not None and now >= self._terminate_at:
            self._terminate_at = None
            self._terminated = True
            return ShutdownStep.TERMINATE
        return ShutdownStep.NONE

    @property
    def exhausted(self) -> bool:
        """Whether SIGKILL was due: nothing more will be."""
        return self._killed

    def seconds_until_due(self) -> float:
        """Seconds until ``due`` has something; infinite without a demand."""
        waiting = [at for at in (self._terminate_at, self._kill_at) if at is not None]
        return max(min(waiting) - self._clock.monotonic(), 0.0) if waiting else float("inf")


def _earlier(known: float | None, new: float) -> float:
    return new if known is None else min(known, new)
