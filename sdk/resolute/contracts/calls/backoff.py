"""Retries: the pauses between attempts, and the loop that makes them.

All retries take their pauses from `Backoff`: calls, reopened streams, and loops that continue after a
failure. A library for retries would replace only `retry`, a loop of ten lines, and would add a dependency to
every training environment.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import TypeVar, final

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import UnavailableError

_MAX_DOUBLINGS = 64
_T = TypeVar("_T")


@final
class Backoff:
    """Pauses that double with each failure in a row, up to a limit, and begin again after a success.

    Each pause is multiplied by a random number between 0.5 and 1.5, so that clients that failed together do
    not retry together. It is not safe to use from several threads.

    Args:
        first: Seconds of the first pause, before jitter.
        longest: Seconds of the longest pause, before jitter.
        jitter: Returns random numbers in [0, 1).
        clock: Measures how long the failures have gone on.
    """

    def __init__(
        self,
        *,
        first: float = 0.2,
        longest: float = 10.0,
        jitter: Callable[[], float] = random.random,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._clock = clock
        self._failing_since: float | None = None
        self.failures = 0
        """Failures since the last success."""

    @property
    def failing_seconds(self) -> float:
        """Seconds since the first failure after the last success; zero after a success."""
        return 0.0 if self._failing_since is None else self._clock.monotonic() - self._failing_since

    def failed(self) -> float:
        """Counts a failure, and returns the seconds to wait before the next attempt."""
        if self._failing_since is None:
            self._failing_since = self._clock.monotonic()
        pause = min(self._first * 2.0 ** min(self.failures, _MAX_DOUBLINGS), self._longest)
        self.failures += 1
        return pause * (0.5 + self._jitter())

    def succeeded(self) -> None:
        """Begins again: the next failure is a first one."""
        self._failing_since = None
        self.failures = 0


def retry(
    call: Callable[[], _T],
    *,
    backoff: Backoff,
    outage_timeout: float = math.inf,
    attempts: float = math.inf,
    retried: tuple[type[Exception], ...] = (UnavailableError,),
    on_retry: Callable[[float, Exception], object] = lambda _seconds, _failure: None,
    sleep: Callable[[float], object] = time.sleep,
) -> _T:
    """Repeats a call until it succeeds.

    Args:
        call: Makes the call once; it must be safe to repeat.
        backoff: Gives the pauses, and measures the outage.
        outage_timeout: Seconds to continue trying, from the first failure on.
        attempts: How often the call is made at most.
        retried: Errors that may pass.
        on_retry: Called with each failure before the pause, with the seconds since the first one; raises an
            error to end the attempts.
        sleep: Waits some seconds.

    Raises:
        UnavailableError: The outage lasted longer than the timeout, or the attempts are used up; likewise the
            other errors of ``retried``.
    """
    while True:
        try:
            return call()
        except retried as failure:
            pause = backoff.failed()
            waited = backoff.failing_seconds
            if waited + pause > outage_timeout or backoff.failures >= attempts:
                raise
            on_retry(waited, failure)
        sleep(pause)
