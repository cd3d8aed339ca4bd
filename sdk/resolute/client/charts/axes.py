"""Axes of charts: positions of values, and the ticks with their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A range of values mapped to a range of pixels."""

    least: float
    most: float
    log: bool
    start: float
    """Where the least value is."""
    end: float
    """Where the largest value is."""

    @classmethod
    def around(cls, values: Sequence[float], *, log: bool, start: float, end: float) -> Axis:
        """Makes the axis that holds all of some values.

        Args:
            values: Finite numbers, above zero where the axis is logarithmic.
            log: Whether it is.
            start: Pixel of the least value.
            end: Pixel of the largest value.
        """
        least, most = (min(values), max(values)) if values else (1.0, 10.0)
        if least == most:
            # One value has room on both sides.
            least, most = (
                (least / 2, most * 2) if log else (least - abs(least or 1) / 2, most + abs(most or 1) / 2)
            )
        return cls(float(least), float(most), log, start, end)

    def place(self, value: float) -> float:
        """The pixel of a value."""
        # Halves, so that no difference of two finite numbers is infinite.
        low, high, at = (self._scaled(one) / 2 for one in (self.least, self.most, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """About so many round values within the axis, with their texts."""
        if self.log:
            low, high = math.ceil(math.log10(self.least)), math.floor(math.log10(self.most))
            step = max(1, math.ceil((high - low + 1) / count))
            tens = [10.0**power for power in range(low, high + 1, step)]
            if len(tens) > 1:
                return [(value, f"{value:g}") for value in tens]
        width = _round_step((self.most / 2 - self.least / 2) * 2 / count)
        if not math.isfinite(width) or width <= 0:
            return [(self.least, f"{self.least:.4g}"), (self.most, f"{self.most:.4g}")]
        first = math.ceil(self.least / width)
        values = [(first + at) * width for at in range(count * 3)]
        inside = [
            value for value in values if self.least <= value <= self.most and (value > 0 or not self.log)
        ]
        return [(value, f"{value:.6g}") for value in inside]

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value


def _round_step(step: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    if not math.isfinite(step) or step <= 0:
        return step
    power = 10.0 ** math.floor(math.log10(step))
    if power == 0:
        return step
    return next((times * power for times in (1, 2, 5) if times * power >= step), 10 * power)
