"""Builds response messages from what was read."""

from __future__ import annotations

from collections.abc import Iterable

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.contracts.values import to_value
from resolute.errors import QuotaError
from resolute_metrics.queries.reports import StoredReport
from resolute_metrics.queries.summaries import NUMBER, Summary
from resolute_metrics.queries.validation_changes import TrialValidations
from resolute_metrics.queries.validations import Best
from resolute_metrics.queries.watcher import Change

MAX_BYTES = 3 << 20
"""Most bytes of a response: clients take 4 MiB."""


def to_change(change: Change) -> api.WatchSeriesResponse:
    """Builds the message of what came of a series."""
    return api.WatchSeriesResponse(
        anew=change.anew,
        steps=change.points.steps.tolist(),
        values=change.points.values.tolist(),
        times=change.points.times.tolist(),
        total_points=change.total,
    )


def to_report(report: StoredReport) -> api.Report:
    """Builds the message of one report."""
    position = report.position
    message = api.Report(
        run=position.run,
        source=report.source,
        sequence=position.sequence,
        group=position.group,
        steps=position.steps,
    )
    message.time.FromNanoseconds(round(report.time * 1e6) * 1000)
    for name, value in report.metrics.items():
        if isinstance(value, float):
            message.metrics[name].double_value = value
        else:
            message.metrics[name].CopyFrom(to_value(value))
    return message


def to_summaries(summaries: Iterable[Summary]) -> api.ListSummariesResponse:
    """Builds the message of summaries.

    Raises:
        QuotaError: They do not fit into one response.
    """
    response = api.ListSummariesResponse()
    for summary in summaries:
        _add_summary(response, summary)
    if response.ByteSize() > MAX_BYTES:
        raise QuotaError(
            f"the {len(response.summaries)} summaries do not fit into one response; "
            "ask for fewer trials at once, or for one group"
        )
    return response


def _add_summary(response: api.ListSummariesResponse, summary: Summary) -> None:
    # Made in place: a message that is made first would be copied.
    message = response.summaries.add(
        trial_id=summary.trial_id,
        group=summary.group,
        name=summary.name,
        count=summary.count,
        sum=summary.sum,
        min=summary.min if summary.count else None,
        max=summary.max if summary.count else None,
        last_steps=summary.newest[0],
        nonfinite_count=summary.nonfinite_count,
        kind=summary.kind,
        last=summary.last if summary.kind == NUMBER else None,
    )
    if summary.kind != NUMBER and summary.has_last:
        message.last_value.CopyFrom(to_value(summary.last))


def to_best(best: Best) -> api.BestValidation:
    """Builds the message of a best validation."""
    return api.BestValidation(trial_id=best.trial_id, value=best.value, steps=best.steps, metric=best.metric)


def to_trial_validations(found: TrialValidations) -> api.TrialValidations:
    """Builds the message of a trial's best and last validation."""
    return api.TrialValidations(
        trial_id=found.trial_id,
        experiment_id=found.experiment_id,
        metric=found.metric,
        best_value=found.best_value,
        best_steps=found.best_steps,
        last_value=found.last_value,
        last_steps=found.last_steps,
        revision=found.revision,
    )
