"""How long a supervisor continues while the control plane is away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.clock import Clock
from resolute.errors import InternalError, ResoluteError, UnauthenticatedError, UnavailableError

_DEFECTS = 5
"""How often a call is repeated when the server answers with an internal error."""
_log = logging.getLogger("resolute.supervisor")
_T = TypeVar("_T")


class OutageTimeout:
    """Time since the control plane last answered. Safe to use from several threads.

    Args:
        seconds: How long it may be away.
        clock: Measures that.
    """

    def __init__(self, seconds: float, *, clock: Clock) -> None:
        self.seconds = seconds
        self._clock = clock
        self._last_answer = clock.monotonic()

    def renew(self) -> None:
        """The control plane answered."""
        self._last_answer = self._clock.monotonic()

    @property
    def exhausted(self) -> bool:
        """Whether it has been away for too long."""
        return self._clock.monotonic() - self._last_answer >= self.seconds


def retry_during_outage(
    call: Callable[[], _T], *, outage_timeout: OutageTimeout, stop: threading.Event, purpose: str
) -> _T:
    """Makes a call that may be repeated until the control plane answers it.

    Args:
        call: Makes the call once.
        outage_timeout: How long to continue; renewed by an answer.
        stop: Ends the attempts when it is set.
        purpose: What the call is for, in the log.

    Raises:
        ResoluteError: What the call raised: at once if that cannot change, else when the outage lasted too
            long or ``stop`` is set.
    """
    defects = 0
    backoff = Backoff()
    while True:
        try:
            result = call()
        except (UnavailableError, UnauthenticatedError, InternalError) as failure:
            defects += isinstance(failure, InternalError)
            if outage_timeout.exhausted or stop.is_set() or defects >= _DEFECTS:
                raise
            _log.warning("%s will be tried again: %s", purpose, failure)
        except ResoluteError:
            outage_timeout.renew()
            raise
        else:
            outage_timeout.renew()
            return result
        # When the event is set the pause ends early, and one last attempt follows.
        stop.wait(backoff.failed())
