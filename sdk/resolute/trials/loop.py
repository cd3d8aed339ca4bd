"""The training loop: it restores, then trains in segments with periodic work between, up to the goals."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from resolute import core
from resolute.runtime.batch_cost import BatchCost
from resolute.trial_errors import InvalidHP
from resolute.trials.counters import Intervals, Progress
from resolute.trials.display import Display
from resolute.trials.goals import Goal, GoalSource
from resolute.trials.search_metric import SearcherMetric
from resolute.trials.stopping import StopCoordinator
from resolute.trials.throughput import Throughput


class CheckpointPolicy(enum.Enum):
    """The validations after which a checkpoint is saved."""

    ALL = "all"
    BEST = "best"
    NONE = "none"


class Segments(Protocol):
    """Trains batches."""

    @property
    def waited_seconds(self) -> float:
        """Seconds for which it has waited for batches so far."""

    def train_until(self, end: int, *, interrupted: Callable[[int], bool]) -> bool:
        """Trains up to a step; returns False if interrupted after an earlier one."""


class Validation(Protocol):
    """Validates the trial."""

    def validate(self) -> Any:
        """Validates and returns metrics by name; every rank calls it."""


class Reports(Protocol):
    """Reports metrics."""

    def report_training(self, progress: Progress) -> None:
        """Reports the training metrics since the last report, if there are any; every rank calls it."""

    def report_validation(self, metrics: Any, progress: Progress) -> None:
        """Reports the metrics of a validation; only the chief calls it."""

    def upload_tensorboard(self) -> None:
        """Uploads the TensorBoard files that were written; every rank calls it."""


class Checkpoints(Protocol):
    """Saves checkpoints."""

    def save(self, progress: Progress, *, chief_only: bool = False) -> str | None:
        """Saves a checkpoint. Every rank calls it, unless only the chief knows that one is due."""


@dataclass(frozen=True, slots=True)
class LoopComponents:
    """The parts of the training loop."""

    core: core.Context
    segments: Segments
    validator: Validation
    reports: Reports
    checkpoints: Checkpoints
    stopping: StopCoordinator
    display: Display
    keeps_open_metrics: Callable[[], bool]
    """Whether a checkpoint keeps metrics that were not reported yet."""
    batch_cost: Callable[[], BatchCost]
    """What a batch costs, as far as the trial declared it."""


class TrainingLoop:
    """Trains one trial until its goals are reached.

    Every rank runs the same loop and makes the same decisions, because the parts gather values that differ
    between ranks.

    Args:
        parts: The parts of the loop.
        progress: The counters of training.
        intervals: The intervals of periodic work.
        policy: The validations after which a checkpoint is saved.
        validate_first: Whether a new trial validates before its first batch.
    """

    def __init__(
        self,
        parts: LoopComponents,
        *,
        progress: Progress,
        intervals: Intervals,
        policy: CheckpointPolicy,
        validate_first: bool,
    ) -> None:
        self._parts = parts
        self._progress = progress
        self._intervals = intervals
        self._policy = policy
        self._validate_first = validate_first
        self._metric = SearcherMetric.of(parts.core)
        self._throughput = Throughput(parts.core, cost=parts.batch_cost)

    def run(self, source: GoalSource) -> None:
        """Trains until no goal is left or a stop is requested. It always ends with a checkpoint.

        Each goal ends with one too: a run that fails on its way to the next begins there, and nowhere before.

        Raises:
            InvalidHP: The trial refuses its hyperparameters.
        """
        progress, train = self._progress, self._parts.core.train
        try:
            for goal in source.goals(progress.epoch_length):
                train.set_status("training")
                should_continue = self._train_to_goal(goal)
                self._save_if_changed()
                if not should_continue:
                    break
        except InvalidHP:
            if progress.saved != progress.step:
                self._parts.checkpoints.save(progress, chief_only=True)
            raise

    def _train_to_goal(self, goal: Goal) -> bool:
        """Trains to a goal; returns False if training must stop before."""
        progress = self._progress
        if self._validate_first and progress.step == 0 and progress.validated < 0:
            self._validate(goal, completes=False)
        while progress.step < goal.end:
            boundary = self._intervals.next_boundary(progress, end=goal.end)
            self._parts.display.segment(progress, goal.end)
            if not self._train_until(boundary):
                self._stop_between_boundaries()
                return False
            if not self._run_boundary_tasks(goal):
                return False
        return progress.validated == progress.step or self._validate_reached_goal(goal)

    def _train_until(self, boundary: int) -> bool:
        with self._throughput.measured(self._progress, self._parts.segments):
            return self._parts.segments.train_until(boundary, interrupted=self._parts.stopping.at_step)

    def _report_training(self) -> None:
        self._parts.reports.report_training(self._progress)
        self._throughput.report(self._progress.step)

    def _run_boundary_tasks(self, goal: Goal) -> bool:
        """Report, validate, checkpoint, agree; returns whether to continue."""
        progress, intervals = self._progress, self._intervals
        self._report_training()
        if self._is_chief:
            goal.listener.on_progress(progress.step)
        if progress.step >= goal.end or intervals.is_due(intervals.validate, progress):
            self._validate(goal, completes=progress.step >= goal.end)
        if intervals.is_due(intervals.checkpoint, progress):
            self._save_if_changed()
        self._parts.display.boundary(progress)
        self._parts.reports.upload_tensorboard()
        return not self._parts.stopping.at_boundary()

    def _validate_reached_goal(self, goal: Goal) -> bool:
        """Validates a goal that was reached before this run began."""
        self._validate(goal, completes=True)
        return not self._parts.stopping.at_boundary()

    def _validate(self, goal: Goal, *, completes: bool) -> None:
        """Validates once for each step; what reaches the goal completes it, then the policy has its say."""
        progress, parts = self._progress, self._parts
        if progress.validated == progress.step:
            return
        train = parts.core.train
        train.set_status("validating")
        metrics = parts.validator.validate()
        progress.validated = progress.step
        best = False
        if self._is_chief:
            value = self._metric.pick(metrics) if self._metric is not None else None
            if self._metric is not None and value is not None and self._policy is CheckpointPolicy.BEST:
                best = self._metric.improves(value, train.get_experiment_best_validation())
            parts.reports.report_validation(metrics, progress)
            parts.display.validation(metrics, progress)
            if completes:
                goal.listener.on_completed(value)
        if self._policy is CheckpointPolicy.BEST:
            best = parts.core.distributed.broadcast(best)
        if best or self._policy is CheckpointPolicy.ALL:
            self._save_if_changed()
        train.set_status("training")

    def _stop_between_boundaries(self) -> None:
        """Saves metrics that are not due yet in the checkpoint, or reports them if it cannot hold them."""
        if not self._parts.keeps_open_metrics():
            self._report_training()

    def _save_if_changed(self) -> None:
        if self._progress.saved != self._progress.step:
            self._parts.checkpoints.save(self._progress)

    @property
    def _is_chief(self) -> bool:
        return self._parts.core.distributed.rank == 0
