"""Builds the response messages of queries."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import report_pb2, summary_pb2, validation_pb2
from resolute.contracts.messages import to_message
from resolute.contracts.values import to_value
from resolute_metrics.queries.curves.growth import Change
from resolute_metrics.queries.curves.series import Series
from resolute_metrics.queries.reports import StoredReport
from resolute_metrics.queries.summaries import NUMBER, Summary
from resolute_metrics.queries.validation_changes import TrialValidations
from resolute_metrics.queries.validations import Best

MAX_BYTES = 3 << 20
"""Most bytes of a response: clients take 4 MiB."""
_KINDS: Mapping[str, summary_pb2.ValueKind.ValueType] = {
    name.removeprefix("VALUE_KIND_").lower(): number for name, number in summary_pb2.ValueKind.items()
}


def to_change(change: Change) -> api.WatchSeriesResponse:
    """Builds the message of a change of a series."""
    return api.WatchSeriesResponse(
        key=change.request.key,
        reset=change.reset,
        steps=change.points.steps.tolist(),
        values=change.points.values.tolist(),
        times=change.points.times.tolist(),
        total_points=change.total,
    )


def to_points(points: Series, total: int) -> api.ListSeriesResponse.Points:
    """Builds the message of a series in a list."""
    return api.ListSeriesResponse.Points(
        steps=points.steps.tolist(),
        values=points.values.tolist(),
        times=points.times.tolist(),
        total_points=total,
    )


def to_report(report: StoredReport) -> report_pb2.Report:
    """Builds the message of one report."""
    position = report.position
    message = report_pb2.Report(
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


def add_summary(response: api.ListSummariesResponse, summary: Summary) -> int:
    """Adds a summary to a response and returns its size in bytes."""
    # Made in place: a message that is made first would be copied.
    message = response.summaries.add(
        trial_id=summary.trial_id,
        group=summary.group,
        name=summary.name,
        count=summary.count,
        sum=summary.sum,
        min=summary.min if summary.count else None,
        max=summary.max if summary.count else None,
        nonfinite_count=summary.nonfinite_count,
        last_kind=_KINDS[summary.kind],
        last_number=summary.last if summary.kind == NUMBER else None,
        last_steps=summary.newest[0],
    )
    if summary.kind != NUMBER and summary.has_last:
        message.last_value.CopyFrom(to_value(summary.last))
    return message.ByteSize()


def to_best(best: Best) -> validation_pb2.BestValidation:
    """Builds the message of a best validation."""
    return to_message(validation_pb2.BestValidation, best)


def to_trial_validations(validations: TrialValidations) -> validation_pb2.TrialValidations:
    """Builds the message of a trial's best and last validation."""
    return to_message(validation_pb2.TrialValidations, validations)
