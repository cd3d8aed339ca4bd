"""Gauges of a service for operators: they are read on request, never pushed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable


class Kind(Enum):
    """The kind of a number: gauge or counter."""

    GAUGE = "gauge"
    """It goes up and down."""
    COUNTER = "counter"
    """It only grows, from zero at the start of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One number at one time."""

    name: str
    """By the conventions of Prometheus: with its unit, a counter without its ``_total``."""
    help: str
    """What it counts, in a line."""
    value: float
    """The number."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What it is of."""
    kind: Kind = Kind.GAUGE
    """How it behaves."""


@runtime_checkable
class GaugeSource(Protocol):
    """A service that provides gauges. If it cannot, it is unhealthy."""

    async def gauges(self) -> Sequence[Gauge]:
        """Reads its numbers: in milliseconds, since it is asked every few seconds.

        Raises:
            ResoluteError: It cannot work: its database does not answer.
        """


class CallCounts:
    """The number of calls, their results and their durations. Only the event loop uses it."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}

    def add(self, method: str, code: str, seconds: float) -> None:
        """Counts a call that ended."""
        count, total = self._counts.get((method, code), (0, 0.0))
        self._counts[method, code] = count + 1, total + seconds

    def gauges(self) -> list[Gauge]:
        """The counts so far."""
        gauges_now = []
        for (method, code), (count, total) in sorted(self._counts.items()):
            labels = {"method": method, "code": code}
            for name, text, value in (
                ("resolute_calls", "Calls that ended.", count),
                ("resolute_call_seconds", "Time that they took.", total),
            ):
                gauges_now.append(Gauge(name=name, help=text, value=value, labels=labels, kind=Kind.COUNTER))
        return gauges_now
