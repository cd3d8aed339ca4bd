"""The layout of a bracket of successive halving: the lengths of its rungs, its first trials, its progress."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

WORST = sys.float_info.max
"""The worst metric: that of trials that exited, and of those that reported no number."""


@dataclass(frozen=True, slots=True)
class Halving:
    """The parameters of one bracket.

    Attributes:
        num_rungs: Number of rungs, at least 1.
        max_length: Length (or time) at the top rung.
        max_trials: Number of trials.
        divisor: Reduction factor: one in ``divisor`` trials is promoted; above 1.
        max_concurrent_trials: Most trials alive at once; 0 lets the method choose.
        smaller_is_better: Whether smaller metrics are better.
        extra_lengths: Lengths of the rungs that extensions have added at the top.
    """

    num_rungs: int
    max_length: int
    max_trials: int
    divisor: float = 4.0
    max_concurrent_trials: int = 16
    smaller_is_better: bool = True
    extra_lengths: tuple[int, ...] = ()

    def length(self, rung: int) -> int:
        """Returns the absolute length of a rung, counted from 0 at the bottom."""
        if rung >= self.num_rungs:
            return self.extra_lengths[rung - self.num_rungs]
        return max(int(self.max_length / self.divisor ** (self.num_rungs - 1 - rung)), 1)

    @property
    def top(self) -> int:
        """The top rung's number."""
        return self.num_rungs - 1 + len(self.extra_lengths)

    def extended(self, *, max_trials: int | None, max_length: int | None) -> Halving:
        """Returns the bracket with more trials or a greater length.

        What is there stays: rungs keep their lengths, and new ones go on top, each `divisor` times as long as
        the one below, the last as long as asked.

        Args:
            max_trials: Number of trials; None for as many as before.
            max_length: Length at the top rung; None for the one before.
        """
        extra_lengths = list(self.extra_lengths)
        if max_length is not None:
            above = self._above(self.length(self.top))
            while above < max_length:
                extra_lengths.append(above)
                above = self._above(above)
            extra_lengths.append(max_length)
        trials = max(self.max_trials, max_trials or 0)
        return replace(self, max_trials=trials, extra_lengths=tuple(extra_lengths))

    def _above(self, length: int) -> int:
        return max(int(length * self.divisor), length + 1)

    @property
    def initial_trials(self) -> int:
        """The number of initial trials."""
        if self.max_concurrent_trials:
            return min(self.max_concurrent_trials, self.max_trials)
        # Enough for one of them to climb to the top.
        return min(max(int(self.divisor ** (self.num_rungs - 1)), 1), self.max_trials)

    def cost(self, metric: float) -> float:
        """Converts a metric into a cost: smaller is better, and JSON can represent it.

        A metric that is no number is the worst there is; infinities are the largest and smallest numbers.
        """
        if math.isnan(metric):
            return WORST
        signed = metric if self.smaller_is_better else -metric
        return min(max(signed, -WORST), WORST)

    def metric(self, cost: float) -> float | None:
        """Returns the metric of a cost; None for the worst cost, which means that there is no metric."""
        if cost == WORST:
            return None
        return cost if self.smaller_is_better else 0.0 - cost

    def progress(self, *, at_bottom: int, ended: int) -> float:
        """Returns the progress of a bracket, from 0 to 1.

        Args:
            at_bottom: Trials that reported at the bottom rung.
            ended: Trials that are over and count.
        """
        # A fifth is held back for the climb that follows the last report at the bottom.
        reported = at_bottom / (1.2 * self.max_trials)
        if at_bottom < self.max_trials:
            return reported
        return max(reported, ended / self.max_trials)
