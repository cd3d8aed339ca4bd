"""The operations of a search, for trainers of other libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from resolute import core
from resolute.core import SearcherOperation, Unit
from resolute.core.searcher import max_length_of
from resolute.info import trial_of
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.trials.search_metric import SearcherMetric, is_time_driven


class SearchOperations:
    """The operations of a search, in order. All ranks call the same methods in the same order.

    Off cluster, and if validation reports drive the search, there are no operations: the library's own
    arguments set the length of the training.

    Args:
        context: The Core API.

    Attributes:
        unit: Unit of the operations' lengths; None without operations.
        max_length: Largest length of an operation; None without operations, or if it is unknown.
        time_driven: Whether validation reports drive the search.

    Raises:
        ValueError: The config has lengths in a unit that such a trainer does not support.
    """

    def __init__(self, context: core.Context) -> None:
        self.unit: Unit | None = None
        self.max_length: int | None = None
        self.time_driven = is_time_driven(context)
        self._is_chief = context.distributed.rank == 0
        self._metric = SearcherMetric.of(context)
        self._operations: Iterator[SearcherOperation] = iter(())
        trial = trial_of(context.info)
        if trial is not None and not self.time_driven:
            self.unit = _unit(context.searcher.get_configured_units())
            self.max_length = max_length_of(ExperimentConfig(trial._config).get_searcher())
            self._operations = context.searcher.operations()
        self._operation = next(self._operations, None)

    @property
    def is_over(self) -> bool:
        """Whether the search has no more operations for this trial."""
        return self.unit is not None and self._operation is None

    @property
    def current(self) -> SearcherOperation | None:
        """The current operation; None if the search gives no operations, or none is left."""
        return self._operation

    def is_reached(self, *, batches: int, epochs: float) -> bool:
        """Returns whether training has reached the length of the current operation.

        Args:
            batches: Batches trained, over all runs.
            epochs: Epochs trained.
        """
        if self._operation is None:
            return False
        return (batches if self.unit is Unit.BATCHES else epochs) >= self._operation.length

    def report_progress(self, *, batches: int, epochs: float) -> None:
        """Reports the progress of the trial to the search."""
        if self._operation is not None and self._is_chief:
            self._operation.report_progress(batches if self.unit is Unit.BATCHES else epochs)

    def complete(self, metrics: Mapping[str, Any]) -> None:
        """Completes the current operation and gets the next one.

        Args:
            metrics: Of a validation; among them the one that the config names.

        Raises:
            RuntimeError: That one is missing, or no number.
        """
        assert self._operation is not None
        if self._is_chief:
            assert self._metric is not None
            self._operation.report_completed(self._metric.pick(metrics))
        self._operation = next(self._operations, None)


def _unit(unit: Unit | None) -> Unit:
    if unit not in {Unit.BATCHES, Unit.EPOCHS}:
        raise ValueError(
            f"the config counts {'in ' + unit.name.lower() if unit else 'without a unit'}, and this trainer "
            "does not know how many batches that is: give searcher.max_length as {batches: N} or {epochs: N}"
        )
    return unit
