"""Log lines about reports of a trial that are dropped because of a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable

_FACTOR = 10


class DropNotes:
    """Writes a line after the first dropped report, after each tenfold number, and at the end.

    Args:
        say: Writes a warning to the log.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._reported = 0
        self._dropped = 0
        self._explanation = ""

    def note(self, dropped: int, explanation: str) -> None:
        """Takes the answer of the metrics service to a batch.

        Args:
            dropped: Reports of the trial that were dropped so far.
            explanation: The same for people.
        """
        with self._lock:
            self._dropped, self._explanation = dropped, explanation
            if dropped >= max(1, self._reported * _FACTOR):
                self._tell()

    def finish(self) -> None:
        """Says how many were dropped in all, if the log does not say so yet."""
        with self._lock:
            if self._dropped > self._reported:
                self._tell()

    def _tell(self) -> None:
        self._say(self._explanation)
        self._reported = self._dropped
