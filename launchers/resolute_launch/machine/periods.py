"""Means over periods, which are merged as they get older."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MOST = 480
"""How many periods are kept, however long a run takes."""
MOST_NAMES = 200
"""Of how many quantities: processes that come and go have names of their own."""


@dataclass(frozen=True, slots=True)
class Period:
    """The measurements of one period."""

    seconds: float
    means: Mapping[str, float]
    """By name."""
    weights: Mapping[str, float]
    """The seconds for which each was measured."""

    def mean(self, name: str) -> float:
        """The mean of a value; NaN where it was not measured."""
        return self.means.get(name, math.nan)

    def joined(self, after: Period) -> Period:
        """This period and the one after it as one."""
        weights = dict(self.weights)
        means = dict(self.means)
        for name, weight in after.weights.items():
            total = weights[name] = weights.get(name, 0.0) + weight
            before = means.get(name, 0.0)
            means[name] = before + (after.means[name] - before) * (weight / total if total else 1.0)
        kept = _longest(weights)
        return Period(
            self.seconds + after.seconds,
            {name: means[name] for name in kept},
            {name: weights[name] for name in kept},
        )


class Periods:
    """A history of bounded size: the shortest periods are the newest ones.

    It merges the two neighbours that are shortest for their age. So a period is never much longer than a
    fixed fraction of its age, and the last minutes keep their full resolution.

    Args:
        most: Largest number of periods.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._periods: list[Period] = []

    def add(self, seconds: float, values: Mapping[str, float]) -> None:
        """Adds what was measured over the last seconds."""
        self._periods.append(Period(seconds, dict(values), dict.fromkeys(values, seconds)))
        if len(self._periods) > self._most:
            self._put_together()

    def all(self) -> Sequence[Period]:
        """The periods, oldest first; each begins where the one before it ends."""
        return tuple(self._periods)

    def names(self) -> Sequence[str]:
        """What was measured in these periods: where there is too much, that which was measured longest."""
        names = set[str]().union(*(period.means for period in self._periods))
        if len(names) <= MOST_NAMES:
            return sorted(names)
        weights = Counter[str]()
        for period in self._periods:
            weights.update(period.weights)
        return sorted(_longest(weights))

    def _put_together(self) -> None:
        age, best, chosen = 0.0, math.inf, 0
        for index in range(len(self._periods) - 2, -1, -1):
            newer, older = self._periods[index + 1], self._periods[index]
            age += newer.seconds
            share = (older.seconds + newer.seconds) / age
            if share < best:
                best, chosen = share, index
        self._periods[chosen : chosen + 2] = [self._periods[chosen].joined(self._periods[chosen + 1])]


def _longest(weights: Mapping[str, float]) -> Iterable[str]:
    if len(weights) <= MOST_NAMES:
        return weights
    return sorted(weights, key=weights.__getitem__, reverse=True)[:MOST_NAMES]
