"""Successive halving over configs: the best ones are tried with more micro batch sizes."""

from __future__ import annotations

from typing import Any

from determined.pytorch.dsat.methods.binary import BinarySearchDSATSearchMethod
from determined.pytorch.dsat.trials import DSATTrial


class ASHADSATSearchMethod(BinarySearchDSATSearchMethod):
    """Halves ranges like the binary search, and continues only with the best configs of each rung.

    Args:
        arguments: Arguments of every method.
        max_rungs: Number of rungs.
        min_binary_search_trials: Number of trials of a config that complete the lowest rung.
        asha_early_stopping: Number of powers of ``divisor`` by which the rungs are enlarged.
        divisor: One in ``divisor`` configs is promoted.
        options: Options of the binary search.
    """

    def __init__(
        self,
        *arguments: Any,
        max_rungs: int = 5,
        min_binary_search_trials: int = 3,
        asha_early_stopping: int = 0,
        divisor: int = 2,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.max_rungs = max_rungs
        self.min_binary_search_trials = min_binary_search_trials
        self.asha_early_stopping = asha_early_stopping
        self.divisor = divisor

    def rung_size(self, rung: int) -> int:
        """How many trials of a config complete a rung."""
        return int(self.min_binary_search_trials * self.divisor ** (self.asha_early_stopping + rung))

    def next_trial(self, last: DSATTrial) -> DSATTrial | None:
        """The config's next until its rung is complete; then the best config that waits for promotion."""
        if not self._is_complete(last):
            return super().next_trial(last)
        promoted = self._promote()
        return None if promoted is None else super().next_trial(promoted)

    def pick(self) -> DSATTrial:
        """One of the highest rung; of these, of the config that was tried most."""
        best = max(
            self.tracker.queue,
            key=lambda one: (
                self.tracker.rungs.get(one.lineage, 0),
                len(self.tracker.of_lineage(one.lineage)),
            ),
        )
        self.tracker.queue.remove(best)
        return best

    def _is_complete(self, last: DSATTrial) -> bool:
        done = len(self.tracker.of_lineage(last.lineage)) >= self.rung_size(
            self.tracker.rungs.get(last.lineage, 0)
        )
        return done or self._is_exhausted(last)

    def _is_exhausted(self, last: DSATTrial) -> bool:
        """Whether the range of the config's micro batches is empty after a trial."""
        lo = last.lo if last.error else last.micro_batch + 1
        hi = last.micro_batch - 1 if last.error else last.hi
        return lo > hi or last.failed_at_lo

    def _promote(self) -> DSATTrial | None:
        """Lifts a config to the next rung and returns its last trial; None if none is good enough."""
        for rung in reversed(range(self.max_rungs - 1)):
            reached = self._complete_in(rung)
            best = sorted(reached, key=self._rank)[: len(reached) // self.divisor]
            for lineage in best:
                last = self.tracker.of_lineage(lineage)[-1]
                if self.tracker.rungs.get(lineage, 0) == rung and not self._is_exhausted(last):
                    self.tracker.rungs[lineage] = rung + 1
                    return last
        return None

    def _complete_in(self, rung: int) -> list[int]:
        """The configs that completed a rung, promoted since or not."""
        lineages = []
        for lineage in dict.fromkeys(trial.lineage for trial in self.tracker.tuning):
            trials = self.tracker.of_lineage(lineage)
            own = self.tracker.rungs.get(lineage, 0)
            over = trials[-1].closed or trials[-1].metric is not None
            if over and (own > rung or (own == rung and self._is_complete(trials[-1]))):
                lineages.append(lineage)
        return lineages

    def _rank(self, lineage: int) -> float:
        best = self.tracker.best_of(self.tracker.of_lineage(lineage))
        value = None if best is None else self.tracker.value(best)
        if value is None:
            return float("inf")
        return value if self.tracker.smaller_is_better else -value
