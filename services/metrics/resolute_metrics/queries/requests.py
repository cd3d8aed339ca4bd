"""Parses the messages of queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute_metrics.queries.curves.downsampling import MAX_POINTS, MIN_POINTS
from resolute_metrics.queries.curves.growth import SeriesRequest
from resolute_metrics.queries.curves.ranges import parse_range
from resolute_metrics.queries.curves.series_pages import SeriesName
from resolute_metrics.queries.reports import ReportFilter
from resolute_metrics.queries.summary_pages import SummaryFilter
from resolute_serving.pagination import parse_order_by
from resolute_serving.subscriptions import MAX_SUBSCRIPTIONS, check_keys
from resolute_serving.validation import invalid, parse_uuid

MAX_CHOICES = 1000
"""Most entries of a filter."""
_WATCHED_POINTS = 1000
_REPORT_ORDER = {"group": None, "steps": None}


def parse_summary_filter(request: api.ListSummariesRequest) -> SummaryFilter:
    """Converts the filter of summaries of a request.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    if not request.trial_ids and not request.experiment_id:
        raise invalid("trial_ids", "neither trial_ids nor experiment_id is set; set at least one of them")
    experiment = request.experiment_id
    return SummaryFilter(
        trial_ids=frozenset(parse_trials(request.trial_ids)),
        experiment_id=parse_uuid(experiment, field="experiment_id") if experiment else "",
        groups=_choices("groups", request.groups),
        names=_choices("names", request.names),
    )


def parse_report_filter(request: api.ListReportsRequest) -> ReportFilter:
    """Converts the filter of reports of a request.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    order = parse_order_by(request.order_by or "group, steps", allowed=_REPORT_ORDER)
    if [by.field for by in order] != ["group", "steps"] or order[0].descending:
        raise invalid(
            "order_by", f"order_by is {request.order_by[:80]!r}; write 'group, steps' or 'group, steps desc'"
        )
    return ReportFilter(
        groups=_choices("groups", request.groups),
        runs=_choices("runs", request.runs),
        within=parse_range(request),
        superseded=request.include_superseded,
        descending=order[1].descending,
    )


def parse_subscriptions(request: api.WatchSeriesRequest) -> list[SeriesRequest]:
    """Converts the subscriptions of a request.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    check_keys(request.subscriptions)
    return [
        SeriesRequest(
            key=one.key,
            trial_id=parse_uuid(one.trial_id, field=f"subscriptions[{index}].trial_id"),
            group=one.group,
            name=one.name,
            most=parse_points_of_each(one, field=f"subscriptions[{index}].max_points"),
        )
        for index, one in enumerate(request.subscriptions)
    ]


def parse_series(request: api.ListSeriesRequest) -> list[SeriesName]:
    """Converts the series of a request.

    Raises:
        InvalidArgumentError: There are none or too many, or a trial is wrong.
    """
    count = len(request.series)
    if not 1 <= count <= MAX_SUBSCRIPTIONS:
        raise invalid("series", f"there are {count} series; ask for 1 to {MAX_SUBSCRIPTIONS}")
    return [
        SeriesName(parse_uuid(one.trial_id, field=f"series[{index}].trial_id"), one.group, one.name)
        for index, one in enumerate(request.series)
    ]


def parse_points_of_each(message: Any, *, field: str = "max_points") -> int:
    """Returns the number of points to which each of several series is downsampled.

    Raises:
        InvalidArgumentError: There would be too few.
    """
    return min(parse_max_points(message, field=field) or _WATCHED_POINTS, MAX_POINTS)


def parse_max_points(message: Any, *, field: str = "max_points") -> int | None:
    """Returns the number of points to which a series is downsampled; None for all points.

    Raises:
        InvalidArgumentError: There would be too few.
    """
    if not message.HasField("max_points"):
        return None
    most = int(message.max_points)
    if most < MIN_POINTS:
        raise invalid(field, f"max_points is {most}; it must be {MIN_POINTS} or more")
    return most


def parse_trials(trial_ids: Sequence[str]) -> list[str]:
    """Converts the UUIDs of trials of a request.

    Raises:
        InvalidArgumentError: One is wrong, or there are too many.
    """
    if len(trial_ids) > MAX_CHOICES:
        raise invalid("trial_ids", f"{len(trial_ids)} trials were asked for; ask for at most {MAX_CHOICES}")
    return [parse_uuid(trial_id, field="trial_ids") for trial_id in trial_ids]


def _choices(field: str, choices: Any) -> frozenset[Any]:
    if len(choices) > MAX_CHOICES:
        raise invalid(field, f"{field} has {len(choices)} entries; name at most {MAX_CHOICES}")
    return frozenset(choices)
