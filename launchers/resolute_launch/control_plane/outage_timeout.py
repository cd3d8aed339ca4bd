"""The timeout after which a supervisor gives up on an unreachable control plane."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from resolute.contracts.calls.backoff import Backoff, retry
from resolute.contracts.clock import Clock
from resolute.errors import InternalError, ResoluteError, UnauthenticatedError, UnavailableError

_MAY_PASS = (UnavailableError, UnauthenticatedError, InternalError)
_DEFECTS = 5
"""How often a call is repeated when the server answers with an internal error."""
_LONGEST_LOOK_SECONDS = 60.0
"""Most seconds between two looks that count."""
_log = logging.getLogger("resolute.supervisor")
_T = TypeVar("_T")


class OutageTimeout:
    """The time since the control plane's last answer. Several threads may use it.

    A stopped or suspended supervisor sends no calls. So only time between consecutive checks counts; during
    an outage, a check follows each attempt to renew the lease.

    Args:
        seconds: Longest outage, in seconds.
        clock: Measures the outage.
    """

    def __init__(self, seconds: float, *, clock: Clock) -> None:
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._away = 0.0
        self._looked_at = clock.monotonic()

    def renew(self) -> None:
        """The control plane answered."""
        with self._lock:
            self._away, self._looked_at = 0.0, self._clock.monotonic()

    @property
    def exhausted(self) -> bool:
        """Whether it has been away for too long."""
        with self._lock:
            now = self._clock.monotonic()
            self._away += min(now - self._looked_at, _LONGEST_LOOK_SECONDS)
            self._looked_at = now
            return self._away >= self.seconds

    def retry(self, call: Callable[[], _T], *, stop: threading.Event, purpose: str) -> _T:
        """Makes a call that may be repeated until the control plane answers it.

        Args:
            call: Makes the call once.
            stop: Ends the attempts when it is set: a pause ends early, and one last attempt follows.
            purpose: What the call is for, in the log.

        Raises:
            ResoluteError: What the call raised: at once if that cannot change, else when the outage lasted
                too long or ``stop`` is set.
        """
        defects = 0

        def check(_: float, failure: Exception) -> None:
            nonlocal defects
            defects += isinstance(failure, InternalError)
            if self.exhausted or stop.is_set() or defects >= _DEFECTS:
                raise failure
            _log.warning("%s will be tried again: %s", purpose, failure)

        try:
            result = retry(call, backoff=Backoff(), retried=_MAY_PASS, on_retry=check, sleep=stop.wait)
        except _MAY_PASS:
            raise
        except ResoluteError:
            self.renew()
            raise
        self.renew()
        return result
