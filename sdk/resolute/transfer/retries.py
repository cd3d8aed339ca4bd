"""Trying again, where a store is away for a while, or a link to it has run out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute.transfer.transport import UrlRefusedError

FIRST_PAUSE = 0.1
"""Seconds before the first repetition; each later pause is twice as long."""
_LONGEST_PAUSE = 10.0
_LINK_ATTEMPTS = 3
_log = logging.getLogger("resolute.core")
_T = TypeVar("_T")
_Link = TypeVar("_Link")


def retry_while_unavailable(
    work: Callable[[], _T],
    *,
    patience: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Clock = SYSTEM_CLOCK,
) -> _T:
    """Repeats work on one file for as long as the store is away or busy.

    Args:
        work: What is done.
        patience: Seconds to go on trying from the first failure on.
        sleep: Waits some seconds.
        clock: Measures the patience.

    Raises:
        UnavailableError: The store was away for longer than the patience.
    """
    start, pause = None, FIRST_PAUSE
    while True:
        try:
            return work()
        except UnavailableError as failure:
            start = clock.monotonic() if start is None else start
            waited = clock.monotonic() - start
            if waited + pause > patience:
                raise
            if pause > 1.0:
                _log.warning("a checkpoint waits for its store (%.0f s so far): %s", waited, failure)
        sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def retry_with_new_url(
    work: Callable[[_Link], _T],
    link: _Link,
    renew: Callable[[], _Link],
    *,
    refusals: tuple[type[FailedPreconditionError], ...] = (UrlRefusedError,),
) -> _T:
    """Works with a link, and with a new one when the store refuses it: it may have run out.

    Args:
        work: What is done.
        link: A presigned URL, or several.
        renew: Asks for new ones.
        refusals: Failures after which a new link may help.
    """
    for attempt in range(1, _LINK_ATTEMPTS):
        try:
            return work(link)
        except refusals as failure:
            _log.info("a presigned URL is refused (attempt %d), a new one is asked for: %s", attempt, failure)
            link = renew()
    return work(link)
