"""Counters of training, and due times of periodic work."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.trials.units import TrainUnit


@dataclass(slots=True)
class Progress:
    """The counter of training, and the steps at which periodic work was last done."""

    epoch_length: int
    """Batches of an epoch."""
    step: int = 0
    """Batches trained, over all runs of the trial."""
    validated: int = -1
    """Step of the latest validation."""
    saved: int = -1
    """Step of the latest checkpoint."""

    @property
    def epochs(self) -> int:
        """Whole epochs trained."""
        return self.step // self.epoch_length


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals of periodic work."""

    report: TrainUnit
    validate: TrainUnit
    checkpoint: TrainUnit

    def next_boundary(self, progress: Progress, *, end: int) -> int:
        """Returns the next step at which an interval ends, at most ``end``."""
        units = (self.report, self.validate, self.checkpoint)
        return min(end, *(unit.next_step(progress.step, progress.epoch_length) for unit in units))

    def is_due(self, unit: TrainUnit, progress: Progress) -> bool:
        """Returns whether an interval of length ``unit`` ends at the current step."""
        return progress.step > 0 and unit.next_step(progress.step - 1, progress.epoch_length) == progress.step
