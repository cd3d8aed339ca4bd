"""Retries calls that reached no service, before the caller gets the error.

The retries of gRPC itself are disabled: since release 1.72, a call whose retry is interrupted by its
deadline, a cancellation or the loss of the connection may never end
(https://github.com/grpc/grpc/issues/41036). After a server was stopped and then killed, one stream in five
stayed open forever; without gRPC's retries, none did.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import final

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.clock import SYSTEM_CLOCK, Clock

NO_GRPC_RETRIES: tuple[tuple[str, int], ...] = (("grpc.enable_retries", 0),)
"""Options of every channel."""
ATTEMPTS = 4
"""How often a call is made at most."""
_FIRST_SECONDS, _LONGEST_SECONDS = 0.1, 2.0
_REPEATED = "UNAVAILABLE"


@final
class Retries:
    """The attempts of one call. Every call of the contract may be repeated.

    Args:
        timeout: Seconds for all attempts together; None for a stream, which has no limit.
        clock: Measures the timeout.
        jitter: Returns random numbers in [0, 1).
    """

    def __init__(
        self,
        timeout: float | None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._ends = None if timeout is None else clock.monotonic() + timeout
        self._backoff = Backoff(first=_FIRST_SECONDS, longest=_LONGEST_SECONDS, jitter=jitter, clock=clock)

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the next attempt may take; None for any time."""
        return None if self._ends is None else max(self._ends - self._clock.monotonic(), 0.0)

    def pause_after(self, status: str) -> float | None:
        """Counts an attempt that failed.

        Args:
            status: Name of the gRPC status.

        Returns:
            Seconds until the next attempt; None when there is none, and the failure is that of the call.
        """
        pause = self._backoff.failed()
        left = self.seconds_left
        if status != _REPEATED or self._backoff.failures >= ATTEMPTS or (left is not None and pause >= left):
            return None
        return pause
