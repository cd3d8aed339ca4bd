"""The log of calls: one line for each call. Many refused calls of unknown callers share one line."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone

import structlog

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_serving.context import Anonymous, actor, current_principal

_ANONYMOUS_SECONDS = 10.0
_log = structlog.get_logger("rpc")
_plain = logging.getLogger("rpc")


class CallLog:
    """Writes the lines.

    Every client that can reach the port can make calls that are refused, and must not fill a disk by that.
    Such calls are counted; at most every ten seconds a short line gives their number.

    Args:
        clock: Clock for the interval and the times of the short lines.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._refused = 0
        self._written_at = float("-inf")

    def write(self, method: str, code: str, seconds: float, **facts: str) -> None:
        """Takes a call that ended.

        Args:
            method: Its full name.
            code: Its status.
            seconds: How long it took.
            facts: What else the line says.
        """
        if code == "OK":
            if not _plain.isEnabledFor(logging.DEBUG):
                return  # before anything of the line is made
            level = _log.debug
        elif isinstance(current_principal.get(), Anonymous):
            self._count_refusal()
            return
        else:
            level = _log.info
        level("call", method=method, code=code, ms=round(seconds * 1000, 2), actor=actor(), **facts)

    def _count_refusal(self) -> None:
        self._refused += 1
        now = self._clock.monotonic()
        if now - self._written_at < _ANONYMOUS_SECONDS:
            return
        moment = datetime.fromtimestamp(self._clock.time(), tz=timezone.utc)
        line = {
            "calls": self._refused,
            "event": "anonymous refused",
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self._refused, self._written_at = 0, now
        # Without what structlog adds to every line: this one stays below 100 bytes.
        _plain.info("%s", json.dumps(line))
