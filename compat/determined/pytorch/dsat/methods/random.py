"""Random configs, each with micro batch sizes around those that are known to work."""

from __future__ import annotations

from typing import Any

from determined.pytorch.dsat.methods.base import BaseDSATSearchMethod
from determined.pytorch.dsat.trials import DSATTrial


class RandomDSATSearchMethod(BaseDSATSearchMethod):
    """Tries random configs, each a few times.

    Args:
        arguments: Arguments of every method.
        trials_per_random_config: Most trials of a config.
        early_stopping: Number of trials without a new best one after which the search ends; None for no such
            limit.
        options: Options of every method.
    """

    def __init__(
        self,
        *arguments: Any,
        trials_per_random_config: int = 5,
        early_stopping: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.trials_per_random_config = trials_per_random_config
        self.early_stopping = early_stopping

    @property
    def stops_early(self) -> bool:
        """Whether there were too many trials since the best."""
        best = self.tracker.best
        if self.early_stopping is None or best is None:
            return False
        over = [trial for trial in self.tracker.tuning if trial.closed]
        return best in over and len(over) - 1 - over.index(best) >= self.early_stopping

    def first_micro_batch(self, lo: int, hi: int) -> int:
        """Most likely one in the middle."""
        return lo + int(self.generator.binomial(max(hi - lo, 0), 0.5))

    def new_range(self, stage: int) -> tuple[int, int]:
        """Above the best micro batch of the stage, if there is one."""
        best = self.tracker.best_of(self.tracker.of_stage(stage))
        if best is None:
            return 1, self.most_records(stage)
        lo = best.micro_batch + 1
        worked = [trial.micro_batch for trial in self.tracker.of_stage(stage) if trial.metric is not None]
        return lo, max(*worked, best.hi, 2 * lo)

    def next_trial(self, last: DSATTrial) -> DSATTrial | None:
        """Another micro batch of the config, unless that was tried enough."""
        if self._is_done(last):
            return None
        if last.error:
            return self.successor(last, lo=last.lo, hi=last.micro_batch - 1)
        lo = last.micro_batch + 1
        return self.successor(last, lo=lo, hi=last.hi if lo <= last.hi else 2 * last.hi)

    def pick(self) -> DSATTrial:
        """The oldest; in the place of one whose config was tried enough since, another config."""
        trial = self.tracker.queue.popleft()
        before = self.tracker.of_lineage(trial.lineage)
        return self.new_lineage() if before and self._is_done(before[-1]) else trial

    def _is_done(self, last: DSATTrial) -> bool:
        lineage, stage = self.tracker.of_lineage(last.lineage), self.tracker.of_stage(last.stage)
        if last.failed_at_lo or len(lineage) >= self.trials_per_random_config:
            return True
        if last.stage == 3 and (self.tracker.works(1) or self.tracker.works(2)):
            return True
        worked = [
            trial.micro_batch for trial in stage if trial.metric is not None and trial.lineage != last.lineage
        ]
        return any(trial.error for trial in lineage) and any(micro >= last.hi for micro in worked)
