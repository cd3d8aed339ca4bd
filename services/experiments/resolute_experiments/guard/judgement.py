"""Judges which values of a metric are bad."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping
from typing import Any

from resolute_config.sections.supervision.relative import Relative

_LEAST_SHARE = 10
"""A median counts once there is this part of the values that it is of."""
_LEAST_VALUES = 5


class Judge:
    """Judges the values of one trial in order.

    Args:
        guard: The section of the config.
    """

    def __init__(self, guard: Mapping[str, Any]) -> None:
        self._metric, self._nan, above = guard["metric"], bool(guard["nan"]), guard.get("above")
        self._relative = Relative.parse(above) if isinstance(above, str) else None
        self._above = None if isinstance(above, str) else above
        self._good = _Window(values_needed(guard))

    def fault(self, value: float) -> str:
        """Says what is wrong with the next value; empty if it is good. Bad ones count for no median."""
        if not math.isfinite(value):
            return f"{self._metric} is {value}" if self._nan else ""
        if self._above is not None and value > self._above:
            return f"{self._metric} is {value:.6g}, above {self._above:g}"
        if self._relative is not None and len(self._good) >= self._least(self._relative):
            usual = self._good.median()
            # Below zero as far above the median as it would be above its opposite.
            if value > usual + (self._relative.factor - 1) * abs(usual):
                return (
                    f"{self._metric} is {value:.6g}, more than {self._relative.factor:g} times the median "
                    f"{usual:.6g} of {len(self._good)} values before"
                )
        self._good.add(value)
        return ""

    @staticmethod
    def _least(relative: Relative) -> int:
        return min(relative.values, max(_LEAST_VALUES, relative.values // _LEAST_SHARE))


class _Window:
    """The last values, which are also kept sorted, because a page of reports is judged on the event loop.

    Args:
        size: Number of values.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: deque[float] = deque()
        self._ordered: list[float] = []

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: float) -> None:
        """Takes the next value in the place of the oldest one."""
        if not self._size:
            return
        if len(self._values) == self._size:
            del self._ordered[bisect_left(self._ordered, self._values.popleft())]
        self._values.append(value)
        insort(self._ordered, value)

    def median(self) -> float:
        """The median of the values; at least one."""
        middle = len(self._ordered) // 2
        if len(self._ordered) % 2:
            return self._ordered[middle]
        return (self._ordered[middle - 1] + self._ordered[middle]) / 2


def values_needed(guard: Mapping[str, Any]) -> int:
    """How many good values before the next one its judgement needs."""
    above = guard.get("above")
    relative = Relative.parse(above) if isinstance(above, str) else None
    return 0 if relative is None else relative.values
