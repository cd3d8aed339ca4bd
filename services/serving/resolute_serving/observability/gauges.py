"""Numbers that tell operators how a service is: read when somebody looks, never pushed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable


class Kind(Enum):
    """How a number behaves."""

    GAUGE = "gauge"
    """It goes up and down."""
    COUNTER = "counter"
    """It only grows, from zero at the start of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One number at one moment."""

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
    """A service that tells its numbers. One that cannot is not healthy."""

    async def gauges(self) -> Sequence[Gauge]:
        """Reads its numbers: in milliseconds, since it is asked every few seconds.

        Raises:
            ResoluteError: It cannot work: its database does not answer.
        """


class CallCounts:
    """How many calls came, how they ended and how long they took. Used in the event loop alone."""

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
