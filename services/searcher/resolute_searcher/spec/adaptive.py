"""Adaptive successive halving: the number of brackets, and the trials and lengths of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from resolute_searcher.spec.halving import Halving


class AdaptiveMode(Enum):
    """The degree to which trials are stopped early."""

    AGGRESSIVE = "aggressive"
    """One bracket, the one with the most rungs."""
    STANDARD = "standard"
    """The half of the brackets that has more rungs."""
    CONSERVATIVE = "conservative"
    """All brackets, down to the one that trains every trial to the end."""

    def rungs(self, most: int) -> range:
        """Returns the numbers of rungs of the brackets, ascending."""
        match self:
            case AdaptiveMode.AGGRESSIVE:
                return range(most, most + 1)
            case AdaptiveMode.STANDARD:
                return range((most - 1) // 2 + 1, most + 1)
            case AdaptiveMode.CONSERVATIVE:
                return range(1, most + 1)


@dataclass(frozen=True, slots=True)
class AdaptivePlan:
    """The parameters of an adaptive search.

    Attributes:
        max_length: Length (or time) at the top rungs.
        max_trials: Number of trials.
        divisor: Reduction factor: one in ``divisor`` trials is promoted; above 1.
        max_rungs: Most rungs of a bracket.
        max_concurrent_trials: Most trials alive at once; 0 lets the method choose.
        mode: Degree to which trials are stopped early.
        bracket_rungs: Rungs of each bracket; empty derives them from the mode.
        smaller_is_better: Whether smaller metrics are better.
    """

    max_length: int
    max_trials: int
    divisor: float = 4.0
    max_rungs: int = 5
    max_concurrent_trials: int = 16
    mode: AdaptiveMode = AdaptiveMode.STANDARD
    bracket_rungs: tuple[int, ...] = ()
    smaller_is_better: bool = True

    def brackets(self) -> list[Halving]:
        """Returns the brackets, the one with the most rungs first: it stops trials earliest."""
        rungs = sorted(self.bracket_rungs or self.mode.rungs(self._most_rungs()), reverse=True)
        trials = split_trials(self.max_trials, divisor=self.divisor, rungs=rungs)
        concurrency = split_concurrency(self.max_concurrent_trials, divisor=self.divisor, trials=trials)
        return [
            Halving(
                num_rungs=num_rungs,
                max_length=self.max_length,
                max_trials=max_trials,
                divisor=self.divisor,
                max_concurrent_trials=concurrent,
                smaller_is_better=self.smaller_is_better,
            )
            for num_rungs, max_trials, concurrent in zip(rungs, trials, concurrency, strict=True)
        ]

    def _most_rungs(self) -> int:
        # Logarithms of exact powers may come out a hair below the whole number, which costs a rung (243 by 3
        # gives 5). The documented results have it so, and searches must come out the same.
        by_length = int(math.log(self.max_length) / math.log(self.divisor)) + 1
        by_trials = int(math.log(self.max_trials) / math.log(self.divisor)) + 1
        return min(self.max_rungs, by_length, by_trials)


def split_trials(max_trials: int, *, divisor: float, rungs: Sequence[int]) -> list[int]:
    """Divides trials among brackets so that each bracket trains about equally long.

    Every bracket gets at least one, so many brackets can get more than `max_trials` together.

    Args:
        max_trials: Number of trials.
        divisor: One over the share that goes up.
        rungs: Rungs of each bracket.
    """
    weights = [divisor ** (count - 1) / count for count in rungs]
    total = sum(weights)
    split = [max(int(weight / total * max_trials), 1) for weight in weights]
    split[0] += max(max_trials - sum(split), 0)
    return split


def split_concurrency(max_concurrent_trials: int, *, divisor: float, trials: Sequence[int]) -> list[int]:
    """Divides the concurrent trials evenly among brackets.

    Args:
        max_concurrent_trials: Trials alive at once; 0 chooses.
        divisor: One over the share that goes up.
        trials: Trials of each bracket.
    """
    if max_concurrent_trials == 0:
        return [max(trials[-1], int(divisor))] * len(trials)
    each, more = divmod(max(max_concurrent_trials, len(trials)), len(trials))
    return [each + 1 if number < more else each for number in range(len(trials))]
