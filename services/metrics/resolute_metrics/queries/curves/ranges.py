"""Ranges of points, by steps and by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import sqlalchemy as sa

from resolute_metrics.store.rows import Floats, Integers, Mask
from resolute_metrics.store.schema import blocks


class RangeFields(Protocol):
    """The request fields that bound steps and time."""

    min_steps: int
    max_steps: int

    @property
    def start_time(self) -> Any:
        """A timestamp."""

    @property
    def end_time(self) -> Any:
        """A timestamp."""

    def HasField(self, field_name: Any) -> bool:  # noqa: N802 - protobuf's name
        """Whether a field is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Bounds of steps and time; None for no bound."""

    min_steps: int | None = None
    """Least steps."""
    max_steps: int | None = None
    """Most steps."""
    start_time: float | None = None
    """Unix time; only points reported then or later."""
    end_time: float | None = None
    """Unix time; only points reported before."""

    @property
    def timed(self) -> bool:
        """Whether times are bounded."""
        return self.start_time is not None or self.end_time is not None

    def block_conditions(self) -> list[sa.ColumnElement[bool]]:
        """Returns conditions on blocks that may have points in the range."""
        clauses: list[sa.ColumnElement[bool]] = []
        if self.min_steps is not None:
            clauses.append(blocks.c.last_step >= self.min_steps)
        if self.max_steps is not None:
            clauses.append(blocks.c.first_step <= self.max_steps)
        return clauses

    def mask(self, steps: Integers, times: Floats) -> Mask:
        """Returns a mask of the points within the bounds.

        Args:
            steps: Steps of each point.
            times: Time of each point; not looked at unless ``timed``.
        """
        result: Mask = np.ones(len(steps), dtype=np.bool_)
        if self.min_steps is not None:
            result &= steps >= self.min_steps
        if self.max_steps is not None:
            result &= steps <= self.max_steps
        if self.start_time is not None:
            result &= times >= self.start_time
        if self.end_time is not None:
            result &= times < self.end_time
        return result


EVERYTHING = Range()
"""No bound at all."""


def parse_range(request: RangeFields) -> Range:
    """Reads the bounds of a request."""

    def seconds(name: str) -> float | None:
        return getattr(request, name).ToNanoseconds() / 1e9 if request.HasField(name) else None

    return Range(
        min_steps=request.min_steps if request.HasField("min_steps") else None,
        max_steps=request.max_steps if request.HasField("max_steps") else None,
        start_time=seconds("start_time"),
        end_time=seconds("end_time"),
    )
