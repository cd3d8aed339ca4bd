"""Writes the platform's warnings about reports to the log of a run."""

from __future__ import annotations

import logging
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute.contracts.spool.format import Line, Stdtype
from resolute.errors import ResoluteError
from resolute.spool.line_writer import LineWriter

_log = logging.getLogger("resolute.spool")


class RunLog:
    """Spools warnings as lines of a run.

    Args:
        spool: Directory of the run's spools.
        clock: Clock for the times of the lines.
    """

    def __init__(self, spool: Path, *, clock: Clock) -> None:
        self._spool = spool
        self._clock = clock

    def warn(self, message: str) -> None:
        """Adds a warning; a full disk must not prevent more than that."""
        text = f"WARNING: {message}"
        _log.warning("%s", text)
        try:
            writer = LineWriter(self._spool, name="limits", clock=self._clock)
            writer.append_lines([Line(self._clock.time(), Stdtype.PLATFORM, text.encode())])
            writer.close()
        except (ResoluteError, OSError) as failure:
            _log.error("the log cannot say what is not kept of the reports: %s", failure)
