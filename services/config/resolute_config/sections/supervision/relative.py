"""The bound of a guard relative to recent values of the metric."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_VALUES = 1000
"""Of so many values at most a median is taken."""
_RELATIVE = re.compile(r"(?P<factor>[0-9]+(?:\.[0-9]+)?) ?x median of (?P<values>[0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Relative:
    """A bound relative to the median of recent values.

    Attributes:
        factor: Multiple of the median, more than 1.
        values: Number of the preceding good values, 2 or more.
    """

    factor: float
    values: int

    @classmethod
    def parse(cls, text: str) -> Relative | None:
        """Reads ``3 x median of 200``; None if it is something else."""
        match = _RELATIVE.fullmatch(text.strip())
        if match is None:
            return None
        factor, values = float(match["factor"]), int(match["values"])
        return cls(factor, values) if factor > 1 and 2 <= values <= MOST_VALUES else None
