"""Checkpoints with the validations that were reported at their steps, and their order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from resolute.client.remote.reports.metrics import Metrics
from resolute.client.schema.ordering import CheckpointSortBy, OrderBy
from resolute.client.schema.records import CheckpointRecord, ExperimentRecord, TrialRecord

_EPOCH = datetime.fromtimestamp(0, tz=timezone.utc)


@dataclass(frozen=True)
class ValidatedCheckpoint:
    """A checkpoint with the validation at its steps."""

    checkpoint: CheckpointRecord
    trial: TrialRecord | None
    """The trial that wrote it; None for a checkpoint of another task."""
    metrics: Mapping[str, Any]
    """The validation's metrics by dotted name; empty when there was none at these steps."""

    def value(self, metric: str) -> float | None:
        """The metric as a number that can be ranked; None when it has none."""
        measured = self.metrics.get(metric)
        if isinstance(measured, bool) or not isinstance(measured, (int, float)) or math.isnan(measured):
            return None
        return float(measured)


def with_validations(
    checkpoints: Iterable[CheckpointRecord], trials: Iterable[TrialRecord], *, metrics: Metrics
) -> list[ValidatedCheckpoint]:
    """Puts checkpoints beside the validations of the trials that wrote them.

    Args:
        checkpoints: The checkpoints.
        trials: The trials that may have written them.
        metrics: The metrics service, asked once for each trial that has checkpoints.
    """
    by_uuid = {trial.uuid: trial for trial in trials}
    validations: dict[str, dict[int, Mapping[str, Any]]] = {}
    result = []
    for checkpoint in checkpoints:
        trial = by_uuid.get(checkpoint.trial_uuid)
        if trial is not None and trial.uuid not in validations:
            reports = metrics.reports(trial, group="validation")
            validations[trial.uuid] = {report.steps_completed: report.metrics for report in reports}
        at_steps = validations.get(checkpoint.trial_uuid, {}).get(checkpoint.steps_completed, {})
        result.append(ValidatedCheckpoint(checkpoint, trial, at_steps))
    return result


def ranked(
    items: Iterable[ValidatedCheckpoint],
    experiment: ExperimentRecord,
    *,
    sort_by: CheckpointSortBy | str | None = None,
    order_by: OrderBy | None = None,
) -> list[ValidatedCheckpoint]:
    """Sorts checkpoints; those that lack what is sorted by come last, in whatever direction.

    Args:
        items: The checkpoints.
        experiment: Tells the metric that decides.
        sort_by: An attribute, or the name of a validation metric; None for the experiment's own metric.
        order_by: Direction; None for the best first by the experiment's own metric, else ascending.
    """
    if sort_by is None or sort_by is CheckpointSortBy.SEARCHER_METRIC:
        metric = experiment.searcher_metric
        default = OrderBy.ASCENDING if experiment.smaller_is_better else OrderBy.DESCENDING
        return _by_metric(items, metric, order_by or default)
    if isinstance(sort_by, str):
        return _by_metric(items, sort_by, order_by or OrderBy.ASCENDING)
    key = _KEYS[sort_by]
    return sorted(
        items,
        key=key,
        reverse=(order_by or OrderBy.ASCENDING) is OrderBy.DESCENDING,
    )


def _by_metric(
    items: Iterable[ValidatedCheckpoint], metric: str, order_by: OrderBy
) -> list[ValidatedCheckpoint]:
    sign = -1.0 if order_by is OrderBy.DESCENDING else 1.0

    def key(item: ValidatedCheckpoint) -> tuple[bool, float, int, int]:
        value = item.value(metric)
        # Of equal ones the earlier, as everywhere: of the first trial, and of its first steps.
        number = item.trial.id if item.trial is not None else 0
        rank = 0.0 if value is None else sign * value
        return (value is None, rank, number, item.checkpoint.steps_completed)

    return sorted(items, key=key)


_KEYS: Mapping[CheckpointSortBy, Any] = {
    CheckpointSortBy.UUID: lambda item: item.checkpoint.uuid,
    CheckpointSortBy.TRIAL_ID: lambda item: item.trial.id if item.trial is not None else 0,
    CheckpointSortBy.BATCH_NUMBER: lambda item: item.checkpoint.steps_completed,
    CheckpointSortBy.START_TIME: lambda item: item.checkpoint.create_time or _EPOCH,
    CheckpointSortBy.END_TIME: lambda item: item.checkpoint.commit_time or _EPOCH,
    CheckpointSortBy.STATE: lambda item: item.checkpoint.state.name,
}
