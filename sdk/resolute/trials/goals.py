"""The goals of a trial: the lengths that its script, search or config requires."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from resolute import core
from resolute.core import Unit
from resolute.trials.search_metric import is_time_driven
from resolute.trials.units import TrainUnit, records_to_batches

_log = logging.getLogger("resolute.pytorch")


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: train up to a step, then validate."""

    end: int
    """The step."""
    listener: GoalListener
    """Receives how far training has come."""


class GoalListener(Protocol):
    """Receives the progress of a trial. Only the chief calls it."""

    def on_progress(self, step: int) -> None:
        """Called with the number of batches trained."""

    def on_completed(self, metric: Any) -> None:
        """Called when the goal is reached and validated."""


class NullListener:
    """Ignores all progress."""

    def on_progress(self, step: int) -> None:
        """Does nothing."""

    def on_completed(self, metric: Any) -> None:
        """Does nothing."""


class _FractionReporter:
    """Reports progress as a fraction of a known length."""

    def __init__(self, train: core.TrainContext, end: int) -> None:
        self._train = train
        self._end = end

    def on_progress(self, step: int) -> None:
        self._train.report_progress(min(step / self._end, 1.0))

    def on_completed(self, metric: Any) -> None:
        """Does nothing: the metric arrives by a validation report."""


class _OperationReporter:
    """Reports progress and the metric to an operation of the search."""

    def __init__(self, operation: core.SearcherOperation, steps_per_unit: float) -> None:
        self._operation = operation
        self._steps_per_unit = steps_per_unit

    def on_progress(self, step: int) -> None:
        if not self._operation.completed:
            self._operation.report_progress(step / self._steps_per_unit)

    def on_completed(self, metric: Any) -> None:
        if not self._operation.completed:
            self._operation.report_completed(metric)


class GoalSource(Protocol):
    """Returns one goal after another."""

    def goals(self, epoch_length: int) -> Iterator[Goal]:
        """Yields goals; each after the previous one is completed.

        Args:
            epoch_length: Batches of an epoch.
        """


class LocalGoal:
    """One goal, set by the script.

    Args:
        length: Total length to train.
    """

    def __init__(self, length: TrainUnit) -> None:
        self._length = length

    def goals(self, epoch_length: int) -> Iterator[Goal]:
        """Yields the one goal."""
        yield Goal(self._length.steps(epoch_length), NullListener())


class SingleBatchGoal:
    """One goal for a test: one batch more than before.

    Args:
        initial_batch: Returns the number of batches trained before.
    """

    def __init__(self, initial_batch: Callable[[], int]) -> None:
        self._initial_batch = initial_batch

    def goals(self, epoch_length: int) -> Iterator[Goal]:
        """Yields the one goal."""
        yield Goal(self._initial_batch() + 1, NullListener())


class FixedLengthGoal(LocalGoal):
    """One goal, set by the config or the script. Validation reports decide whether it is reached.

    Args:
        length: Total length to train.
        train: Receives progress.
    """

    def __init__(self, length: TrainUnit, train: core.TrainContext) -> None:
        super().__init__(length)
        self._train = train

    def goals(self, epoch_length: int) -> Iterator[Goal]:
        """Yields the one goal."""
        for goal in super().goals(epoch_length):
            yield Goal(goal.end, _FractionReporter(self._train, goal.end))


class SearchGoals:
    """The operations of a search.

    Args:
        searcher: The search.
        unit: Unit of their lengths.
        global_batch_size: Number of records of a batch over all slots, for lengths in records.
    """

    def __init__(self, searcher: core.SearcherContext, unit: Unit, global_batch_size: int | None) -> None:
        self._searcher = searcher
        self._unit = unit
        self._global_batch_size = global_batch_size

    def goals(self, epoch_length: int) -> Iterator[Goal]:
        """Yields a goal for each operation."""
        for operation in self._searcher.operations():
            end = self._steps(operation.length, epoch_length)
            yield Goal(end, _OperationReporter(operation, end / operation.length))

    def _steps(self, length: int, epoch_length: int) -> int:
        if self._unit is Unit.EPOCHS:
            return length * epoch_length
        if self._unit is Unit.RECORDS:
            return records_to_batches(length, self._global_batch_size)
        return length


def local_goal(max_length: TrainUnit | None) -> GoalSource:
    """Returns the goal of a training off cluster.

    Raises:
        ValueError: No length is given.
        TypeError: It is none.
    """
    if max_length is None:
        raise ValueError(
            "max_length must be given off cluster, such as fit(max_length=pytorch.Epoch(1)): no search "
            "decides there"
        )
    return LocalGoal(_checked_length(max_length))


def cluster_goals(
    context: core.Context, max_length: TrainUnit | None, *, global_batch_size: int | None
) -> GoalSource:
    """Returns the goals of a trial on a cluster.

    Args:
        context: The Core API.
        max_length: What the script asks for; it decides only where validation reports drive the search.
        global_batch_size: Number of records of a batch over all slots, for lengths in records.

    Raises:
        ValueError: Neither the config nor the script says how long to train.
        TypeError: ``max_length`` is not a length.
    """
    if is_time_driven(context):
        length = _fixed_length(context, max_length, global_batch_size)
        return FixedLengthGoal(length, context.train)
    if max_length is not None:
        _log.warning("max_length has no effect on a cluster: searcher.max_length of the config decides")
    unit = context.searcher.get_configured_units()
    if unit is None:
        raise ValueError(
            "Searcher units must be configured for training with a Trial class: give searcher.max_length "
            "as {batches: N}, {epochs: N} or {records: N}"
        )
    return SearchGoals(context.searcher, unit, global_batch_size)


def _fixed_length(
    context: core.Context, max_length: TrainUnit | None, global_batch_size: int | None
) -> TrainUnit:
    if max_length is not None:
        return _checked_length(max_length)
    config = context.info.trial._config if context.info else {}
    configured = (config.get("searcher") or {}).get("max_length")
    if not isinstance(configured, dict):
        raise ValueError(  # noqa: TRY004 - nothing is there
            "max_length is missing: this search is driven by time, so that "
            "fit(max_length=pytorch.Epoch(...)) or searcher.max_length must say how long to train at most"
        )
    warnings.warn(
        "searcher.max_length of the config is deprecated here: pass fit(max_length=...)",
        FutureWarning,
        stacklevel=4,
    )
    return TrainUnit.from_config(configured, global_batch_size)


def _checked_length(max_length: TrainUnit) -> TrainUnit:
    if not isinstance(max_length, TrainUnit) or not isinstance(max_length.value, int):
        raise TypeError(
            f"max_length is {max_length!r}; pytorch.Batch(number) or pytorch.Epoch(number) was expected"
        )
    return max_length
