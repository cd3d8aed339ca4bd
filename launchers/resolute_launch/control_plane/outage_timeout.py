"""How a supervisor bears with a control plane that is away."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from resolute.contracts.clock import Clock
from resolute.errors import InternalError, ResoluteError, UnauthenticatedError, UnavailableError

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_DEFECTS = 5
"""How often a call is repeated that a defect of the server answered."""
_log = logging.getLogger("resolute.supervisor")
_T = TypeVar("_T")


class OutageTimeout:
    """Time since the control plane was last heard of. Safe to use from several threads.

    Args:
        seconds: How long it may be away.
        clock: Measures that.
    """

    def __init__(self, seconds: float, *, clock: Clock) -> None:
        self.seconds = seconds
        self._clock = clock
        self._heard = clock.monotonic()

    def renew(self) -> None:
        """It was heard of."""
        self._heard = self._clock.monotonic()

    @property
    def exhausted(self) -> bool:
        """Whether it has been away for too long."""
        return self._clock.monotonic() - self._heard >= self.seconds


def backoff_intervals(*, longest: float = _LONGEST_PAUSE) -> Iterator[float]:
    """Yields growing pauses between attempts, with jitter so that clients do not retry in step."""
    pause = _FIRST_PAUSE
    while True:
        yield pause * random.uniform(0.5, 1.5)  # noqa: S311  # no secret depends on it
        pause = min(pause * 2, longest)


def call_through_outages(
    call: Callable[[], _T], *, patience: OutageTimeout, stop: threading.Event, purpose: str
) -> _T:
    """Makes a call that may be repeated until the control plane answers it.

    Args:
        call: Makes the call once.
        patience: How long to go on; renewed by an answer.
        stop: Ends the attempts.
        purpose: What it is for, in the log.

    Raises:
        ResoluteError: What the call raised: at once if that cannot change, else when the patience is over or
            ``stop`` is set.
    """
    defects = 0
    for pause in backoff_intervals():
        try:
            result = call()
        except (UnavailableError, UnauthenticatedError, InternalError) as failure:
            defects += isinstance(failure, InternalError)
            if patience.exhausted or stop.is_set() or defects >= _DEFECTS:
                raise
            _log.warning("%s will be tried again: %s", purpose, failure)
        except ResoluteError:
            patience.renew()
            raise
        else:
            patience.renew()
            return result
        # A set event only cuts the pause short: one last attempt follows.
        stop.wait(pause)
    raise AssertionError("backoff_intervals never end")
