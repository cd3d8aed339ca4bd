"""Backoff for loops, with one log line for each different failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from resolute.contracts.calls.backoff import Backoff
from resolute.errors import InternalError, ResoluteError

LONGEST_PAUSE_SECONDS = 5.0
_T = TypeVar("_T")


class LoggedBackoff:
    """The consecutive failures of an operation that is repeated until it succeeds.

    Args:
        log: A structured logger.
        what: Name of the operation, for the log.
        longest: Seconds of the longest pause.
        facts: Further fields of each log line.
    """

    def __init__(
        self, log: Any, what: str, *, longest: float = LONGEST_PAUSE_SECONDS, **facts: object
    ) -> None:
        self._log = log.bind(**facts)
        self._what = what
        self._backoff = Backoff(longest=longest)
        self._logged = ""

    def succeeded(self) -> None:
        """Begins again."""
        self._backoff.succeeded()
        self._logged = ""

    def failed(self, failure: Exception) -> float:
        """Counts a failure.

        A defect is logged with its traceback, anything else in one line; the same failure in a row only once.

        Returns:
            Seconds until the next attempt.
        """
        reason = f"{type(failure).__name__}: {failure}"
        if reason != self._logged:
            expected = isinstance(failure, ResoluteError) and not isinstance(failure, InternalError)
            self._log.warning(
                f"{self._what}; it will be tried again", reason=reason, exc_info=None if expected else failure
            )
            self._logged = reason
        return self._backoff.failed()


async def until_it_succeeds(
    work: Callable[[], Awaitable[_T]],
    backoff: LoggedBackoff,
    *,
    retried: tuple[type[Exception], ...] = (Exception,),
) -> _T:
    """Does something until it succeeds once.

    Args:
        work: What is done.
        backoff: Names it in the log, and says how long to pause.
        retried: Errors that may pass; by default all, since a defect must not end the work for good.

    Returns:
        What the work returned.
    """
    while True:
        try:
            return await work()
        except retried as failure:
            await asyncio.sleep(backoff.failed(failure))


async def until_found(
    look: Callable[[], Awaitable[_T | None]], failures: LoggedBackoff, *, pauses: Backoff
) -> _T:
    """Looks until something is found, whatever a look raises.

    Args:
        look: Looks once; None when there is nothing yet.
        failures: Names the looks in the log, and says how long to pause after one that failed.
        pauses: Says how long to pause after one that found nothing.

    Returns:
        What was found.
    """
    while True:
        result = await until_it_succeeds(look, failures)
        if result is not None:
            return result
        failures.succeeded()
        await asyncio.sleep(pauses.failed())
