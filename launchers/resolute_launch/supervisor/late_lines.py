"""The wait for a run's last lines before its end is reported. It is bounded, and the log mentions it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute.contracts.spool.format import Line, Stdtype
from resolute.errors import ResoluteError
from resolute.spool.delivery.shipping import SpoolShipper
from resolute.spool.line_writer import LineWriter

_log = logging.getLogger("resolute.supervisor")


class LateLines:
    """Waits until the lines of an ended run have been sent.

    Args:
        shipping: Sends the lines.
        spool: Directory of the spools.
        seconds: Longest duration of one wait.
        clock: Measures the wait.
    """

    def __init__(self, shipping: SpoolShipper, spool: Path, *, seconds: float, clock: Clock) -> None:
        self._shipping = shipping
        self._spool = spool
        self._seconds = seconds
        self._clock = clock
        self._noted = False

    def wait(self, *, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Waits until all lines have arrived. After the first wait that was too short, the log says so.

        Args:
            give_up: Asked now and then whether to stop waiting.

        Returns:
            Whether all lines have arrived.
        """
        deadline = self._clock.monotonic() + self._seconds
        if self._shipping.drain_lines(give_up=lambda: give_up() or self._clock.monotonic() >= deadline):
            return True
        if not self._noted:
            self._noted = True
            self._note()
        return False

    def _note(self) -> None:
        text = (
            f"WARNING: lines of this run had not all arrived {self._seconds:g} s after it ended; the missing "
            "ones follow when the logs service takes them"
        )
        _log.warning("%s", text)
        try:
            writer = LineWriter(self._spool, clock=self._clock)
            writer.append_lines([Line(self._clock.time(), Stdtype.PLATFORM, text.encode())])
            writer.close()
        except (ResoluteError, OSError) as failure:
            _log.error("the log cannot say that lines are missing: %s", failure)
