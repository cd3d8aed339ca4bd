"""Streams of responses that survive a restart of the service."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, cast

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import UnauthenticatedError, UnavailableError

MessageT = TypeVar("MessageT")
OUTAGE_TIMEOUT = 300.0
"""Seconds that a follower waits for a service that went away, before it gives up."""
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 3.0


class ResumedStream(Generic[MessageT]):
    """Iterates a stream, and reopens it where it was interrupted. ``cancel`` ends it from any thread.

    Args:
        reopen: Opens the stream after the last message that was received. It opens the stream the first time
            too.
        finished: Returns whether a stream that ended without an error is complete. A service that shuts down
            ends its streams without an error too.
        outage_timeout: Seconds that an interruption may last. It does not apply to the first opening.
        clock: Clock for the interruption.
    """

    def __init__(
        self,
        reopen: Callable[[], Any],
        *,
        finished: Callable[[], bool] = lambda: True,
        outage_timeout: float = OUTAGE_TIMEOUT,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._reopen = reopen
        self._finished = finished
        self._outage_timeout = outage_timeout
        self._clock = clock
        self._cancelled = threading.Event()
        self._stream: Any = None

    def __iter__(self) -> Iterator[MessageT]:
        seen = False
        backoff = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE, clock=self._clock)
        while not self._cancelled.is_set():
            self._stream = self._reopen()
            if self._cancelled.is_set():  # cancelled between the test above and the opening
                self._stream.cancel()
                return
            try:
                for message in self._stream:
                    seen = True
                    backoff.succeeded()
                    yield cast("MessageT", message)
                if self._finished():
                    return
            except (UnavailableError, UnauthenticatedError) as error:
                if self._cancelled.is_set():
                    return
                if not seen or backoff.failing_seconds > self._outage_timeout:
                    raise
                # The token that opened it may have expired. A second refusal is of the token of the moment.
                seen = not isinstance(error, UnauthenticatedError)
            self._cancelled.wait(backoff.failed())

    def cancel(self) -> None:
        """Ends the iteration, also one that waits for a message."""
        self._cancelled.set()
        if self._stream is not None:
            self._stream.cancel()
