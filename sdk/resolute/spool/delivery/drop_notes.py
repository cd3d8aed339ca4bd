"""Says in the log of a trial that reports of it are dropped because a limit is reached."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute.contracts.spool.format import Line, Stdtype
from resolute.errors import ResoluteError
from resolute.spool.line_writer import LineWriter

_FACTOR = 10
_log = logging.getLogger("resolute.spool")


class DropNotes:
    """Writes a line when the first report was dropped, when ten times as many were, and at the end.

    Args:
        spool: Where the run's lines are spooled.
        clock: Times the lines.
    """

    def __init__(self, spool: Path, *, clock: Clock) -> None:
        self._spool = spool
        self._clock = clock
        self._lock = threading.Lock()
        self._told = 0
        self._dropped = 0
        self._explanation = ""

    def note(self, dropped: int, explanation: str) -> None:
        """Takes what the metrics service said to a batch.

        Args:
            dropped: Reports of the trial that were dropped so far.
            explanation: The same for people.
        """
        with self._lock:
            self._dropped, self._explanation = dropped, explanation
            if dropped >= max(1, self._told * _FACTOR):
                self._tell()

    def finish(self) -> None:
        """Says how many were dropped in all, if the log does not say so yet."""
        with self._lock:
            if self._dropped > self._told:
                self._tell()

    def _tell(self) -> None:
        text = f"WARNING: {self._explanation}"
        _log.warning("%s", text)
        try:
            writer = LineWriter(self._spool, name="limits", clock=self._clock)
            writer.append_lines([Line(self._clock.time(), Stdtype.PLATFORM, text.encode())])
            writer.close()
        except (ResoluteError, OSError) as failure:
            _log.error("the log cannot say that reports were dropped: %s", failure)
        self._told = self._dropped
