"""Which values of a metric are bad."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from resolute_experiments.config.sections.supervision.guard import Relative

_LEAST_SHARE = 10
"""A median counts once there is this part of the values that it is of."""
_LEAST_VALUES = 5


class Judge:
    """Judges the values of one trial in their order.

    Args:
        guard: The section of the config.
    """

    def __init__(self, guard: Mapping[str, Any]) -> None:
        self._metric, self._nan, above = guard["metric"], bool(guard["nan"]), guard.get("above")
        self._relative = Relative.parse(above) if isinstance(above, str) else None
        self._above = None if isinstance(above, str) else above
        self._good: deque[float] = deque(maxlen=values_needed(guard))

    def fault(self, value: float) -> str:
        """Says what is wrong with the next value; empty if it is good. Bad ones count for no median."""
        if not math.isfinite(value):
            return f"{self._metric} is {value}" if self._nan else ""
        if self._above is not None and value > self._above:
            return f"{self._metric} is {value:.6g}, above {self._above:g}"
        if self._relative is not None and len(self._good) >= self._least(self._relative):
            usual = median(self._good)
            # Below zero as far above the median as it would be above its opposite.
            if value > usual + (self._relative.factor - 1) * abs(usual):
                return (
                    f"{self._metric} is {value:.6g}, more than {self._relative.factor:g} times the median "
                    f"{usual:.6g} of {len(self._good)} values before"
                )
        self._good.append(value)
        return ""

    @staticmethod
    def _least(relative: Relative) -> int:
        return min(relative.values, max(_LEAST_VALUES, relative.values // _LEAST_SHARE))


def values_needed(guard: Mapping[str, Any]) -> int:
    """How many good values before the next one its judgement needs."""
    above = guard.get("above")
    relative = Relative.parse(above) if isinstance(above, str) else None
    return 0 if relative is None else relative.values
