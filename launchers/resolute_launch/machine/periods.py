"""Means over periods, which are put together as they get older."""

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
    """What was measured from a time to the next."""

    seconds: float
    sums: Mapping[str, float]
    """Each value times the seconds for which it was measured, by name."""
    weights: Mapping[str, float]
    """These seconds."""

    def mean(self, name: str) -> float:
        """The mean of a value; NaN where it was not measured."""
        weight = self.weights.get(name, 0.0)
        return self.sums[name] / weight if weight else math.nan

    def joined(self, after: Period) -> Period:
        """This period and the one after it as one."""
        weights, sums = _added(self.weights, after.weights), _added(self.sums, after.sums)
        kept = _longest(weights)
        return Period(
            self.seconds + after.seconds,
            {name: sums[name] for name in kept},
            {name: weights[name] for name in kept},
        )


class Periods:
    """A history of bounded size: the shortest periods are the newest ones.

    Of two neighbours those are put together that are shortest for their age, so that a period is never much
    longer than a fixed part of its age, and the last minutes stay as they were measured.

    Args:
        most: How many periods are kept.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._periods: list[Period] = []

    def add(self, seconds: float, values: Mapping[str, float]) -> None:
        """Adds what was measured over the last seconds."""
        weights = dict.fromkeys(values, seconds)
        self._periods.append(
            Period(seconds, {name: value * seconds for name, value in values.items()}, weights)
        )
        if len(self._periods) > self._most:
            self._put_together()

    def all(self) -> Sequence[Period]:
        """The periods, oldest first; each begins where the one before it ends."""
        return tuple(self._periods)

    def names(self) -> Sequence[str]:
        """What was measured in these periods: where there is too much, that which was measured longest."""
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


def _added(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}
