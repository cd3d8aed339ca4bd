"""What was measured, beside what is promised."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

PAINT_MS = 1000.0
INTERACTION_MS = 100.0
ZOOM_MS = 300.0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One measurement, in milliseconds."""

    taken: float
    page: float
    """Processor time that the page's main thread had of it."""
    server: float
    """Processor time of the control plane meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measurement, repeated."""

    name: str
    samples: tuple[Sample, ...]
    limit: float | None
    """What the median must not exceed; nothing where nothing is promised."""

    @property
    def median(self) -> float:
        """What counts."""
        return statistics.median(one.taken for one in self.samples)

    @property
    def met(self) -> bool:
        """Whether it is within its limit."""
        return self.limit is None or self.median <= self.limit

    def line(self) -> str:
        """What a person reads."""
        worst = max(one.taken for one in self.samples)
        page, server = (
            statistics.median(getattr(one, name) for one in self.samples) for name in ("page", "server")
        )
        limit = "" if self.limit is None else f"limit {self.limit:g}" + ("" if self.met else ", MISSED")
        return (
            f"{self.name:44} {self.median:7.0f} ms  worst {worst:7.0f} of {len(self.samples)}  "
            f"processor: page {page:6.0f}, server {server:6.0f}  {limit}"
        ).rstrip()
