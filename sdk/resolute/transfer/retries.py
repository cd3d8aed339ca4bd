"""Retries transfers while a store does not answer, with a new URL if one has expired."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from resolute.contracts.calls.backoff import Backoff, retry
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute.transfer.transport import UrlRefusedError

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
_QUIET_SECONDS = 1.0
"""Outages that are shorter are not worth a line in the log."""
_LINK_ATTEMPTS = 3
_log = logging.getLogger("resolute.core")
_T = TypeVar("_T")
_Link = TypeVar("_Link")


def new_backoff() -> Backoff:
    """Makes the pauses between attempts at a transfer."""
    return Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)


def retry_transfer(
    work: Callable[[], _T],
    *,
    outage_timeout: float,
    sleep: Callable[[float], None] = time.sleep,
    backoff: Backoff | None = None,
    retried: tuple[type[Exception], ...] = (UnavailableError,),
) -> _T:
    """Repeats work on files while the store is away or busy; the log says so when that takes long.

    Args:
        work: What is done.
        outage_timeout: Seconds to continue trying from the first failure on.
        sleep: Waits some seconds.
        backoff: Gives the pauses, and measures the outage.
        retried: Errors that may pass; with ``QuotaError`` a full store is waited for too.

    Raises:
        UnavailableError: The outage lasted longer than the timeout; likewise the other errors of ``retried``.
    """

    def log(waited: float, failure: Exception) -> None:
        if waited > _QUIET_SECONDS:
            _log.warning("a transfer waits for its store (%.0f s so far): %s", waited, failure)

    return retry(
        work,
        outage_timeout=outage_timeout,
        backoff=backoff or new_backoff(),
        retried=retried,
        on_retry=log,
        sleep=sleep,
    )


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
