"""The log of calls: one line for each call that failed, and of many alike their number.

Calls that succeed are logged where the level is debug.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from datetime import datetime, timezone
from typing import NamedTuple

import structlog

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_serving.context import Anonymous, actor, current_principal

_SECONDS = 10.0
_LINES = 5
"""Most calls of one kind that are logged one by one within ten seconds; the others are counted."""
_log = structlog.get_logger("rpc")
_plain = logging.getLogger("rpc")


class _Kind(NamedTuple):
    actor: str
    method: str
    code: str


_ANONYMOUS = _Kind("", "", "")
"""Calls of unknown callers that were refused, whatever they called."""


class CallLog:
    """Writes the lines.

    Every client that can reach the port can make calls that fail, and a service that stops ends thousands of
    streams: neither may fill a disk. Calls alike are counted, and beyond a few their number is written once
    every ten seconds.

    Args:
        clock: Clock for the interval and the times of the short lines.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._counts: Counter[_Kind] = Counter()
        self._began = float("-inf")

    def write(self, method: str, code: str, seconds: float, **facts: str) -> None:
        """Takes a call that ended.

        Args:
            method: Its full name.
            code: Its status.
            seconds: How long it took.
            facts: What else the line says.
        """
        if code == "OK":
            if _plain.isEnabledFor(logging.DEBUG):  # before anything of the line is made
                self._write(method, code, seconds, facts, level=logging.DEBUG)
            return
        if isinstance(current_principal.get(), Anonymous):
            if self._count(_ANONYMOUS) == 1:
                self._write_refusals(1)
        elif self._count(_Kind(actor(), method, code)) <= _LINES:
            self._write(method, code, seconds, facts, level=logging.INFO)

    def _write(self, method: str, code: str, seconds: float, facts: dict[str, str], *, level: int) -> None:
        _log.log(level, "call", method=method, code=code, ms=round(seconds * 1000, 2), actor=actor(), **facts)

    def _count(self, kind: _Kind) -> int:
        """How many calls of a kind the interval has, with this one."""
        now = self._clock.monotonic()
        if now - self._began >= _SECONDS:
            self._began = now
            self._write_numbers()
        self._counts[kind] += 1
        return self._counts[kind]

    def _write_numbers(self) -> None:
        """Writes how many calls of the last interval had no lines, and begins the next one."""
        if (refused := self._counts.pop(_ANONYMOUS, 0)) > 1:
            self._write_refusals(refused - 1)
        for kind, count in self._counts.items():
            if count > _LINES:
                _log.info("more calls", calls=count - _LINES, **kind._asdict())
        self._counts.clear()

    def _write_refusals(self, count: int) -> None:
        moment = datetime.fromtimestamp(self._clock.time(), tz=timezone.utc)
        line = {
            "calls": count,
            "event": "anonymous refused",
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        # Without what structlog adds to every line: this one stays below 100 bytes.
        _plain.info("%s", json.dumps(line))
