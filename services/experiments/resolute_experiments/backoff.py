"""What a loop does about failures: pause ever longer, and say each once, in a line."""

from __future__ import annotations

from typing import Any

from resolute.errors import InternalError, ResoluteError

PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after the first, second, … failure in a row; the last one from then on."""


class Backoff:
    """Failures in a row of something that is repeated until it succeeds.

    Args:
        log: A structured logger.
        what: What failed, for the log.
        facts: More for each line.
    """

    def __init__(self, log: Any, what: str, **facts: object) -> None:
        self._log = log.bind(**facts)
        self._what = what
        self._failures = 0
        self._said = ""

    def succeeded(self) -> None:
        """Begins anew."""
        self._failures, self._said = 0, ""

    def failed(self, failure: Exception) -> float:
        """Notes a failure.

        A defect is said with its traceback, anything else in one line, and the same one a second time not.

        Returns:
            Seconds until the next attempt.
        """
        self._failures += 1
        said = f"{type(failure).__name__}: {failure}"
        if said != self._said:
            expected = isinstance(failure, ResoluteError) and not isinstance(failure, InternalError)
            self._log.warning(
                f"{self._what}; it will be tried again", reason=said, exc_info=None if expected else failure
            )
            self._said = said
        return PAUSES_SECONDS[min(self._failures, len(PAUSES_SECONDS)) - 1]
