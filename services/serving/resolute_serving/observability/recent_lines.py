"""The last lines of a process's log, for admins who cannot read its files."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

MOST_LINES = 1000
"""How many lines are kept."""
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """A line of the log."""

    sequence: int
    """Its number since the process began, from 1."""
    text: str
    """What was written; of a very long one, the beginning."""


class RecentLines(logging.Handler):
    """A log handler that keeps the last lines in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[LoggedLine] = deque(maxlen=MOST_LINES)
        self._last = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the lines of a record. The caller holds the lock of the handler."""
        try:
            text = self.format(record).encode(errors="backslashreplace").decode()
        except Exception:  # noqa: BLE001 - as all handlers do: a line that cannot be formatted fails no caller
            self.handleError(record)
            return
        # A traceback has many lines.
        for line in text.splitlines()[-MOST_LINES:]:
            self._last += 1
            self._lines.append(LoggedLine(self._last, line[:_LONGEST]))

    def after(self, sequence: int) -> Sequence[LoggedLine]:
        """Returns the lines that are kept and have a higher number, in order."""
        self.acquire()
        try:
            return [line for line in self._lines if line.sequence > sequence]
        finally:
            self.release()


RECENT_LINES = RecentLines()
"""Those of this process."""
