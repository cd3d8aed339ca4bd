"""Summaries, series and reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from support.services.metrics import Metrics, Report, blocks_of

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import report_pb2, summary_pb2
from resolute.contracts.values import from_value
from resolute.errors import InvalidArgumentError, QuotaError


def test_a_summary_counts_finite_values_and_tells_the_last(metrics: Metrics) -> None:
    values = [2.0, math.nan, -1.0, math.inf, 4.0]
    metrics.report(*(("training", step, {"loss": value}) for step, value in enumerate(values)))
    found = metrics.summaries()["training", "loss"]
    assert (found.count, found.sum, found.min, found.max) == (3, 5, -1, 4)
    assert (found.nonfinite_count, found.last_number, found.last_steps, found.last_kind) == (
        *(2, 4, 4),
        summary_pb2.VALUE_KIND_NUMBER,
    )


def test_a_metric_that_was_never_finite_has_no_extremes(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"loss": math.nan}))
    found = metrics.summaries()["training", "loss"]
    assert not found.HasField("min")
    assert not found.HasField("max")
    assert math.isnan(found.last_number)


def test_the_last_value_is_the_one_with_the_most_steps(metrics: Metrics) -> None:
    metrics.report(("training", 20, {"loss": 2.0}), ("training", 10, {"loss": 1.0}))
    metrics.report(("training", 5, {"loss": 0.5}), run=2)
    found = metrics.summaries()["training", "loss"]
    assert (found.last_number, found.last_steps, found.count) == (2, 20, 3)


@pytest.mark.parametrize(
    ("value", "kind"), [("text", "STRING"), (True, "BOOL"), (None, "NULL"), ([1, "a"], "LIST"), ({}, "MAP")]
)
def test_values_that_are_no_numbers_are_kept(metrics: Metrics, value: Any, kind: str) -> None:
    metrics.report(("training", 1, {"loss": 1.0, "note": value}))
    found = metrics.summaries()["training", "note"]
    assert summary_pb2.ValueKind.Name(found.last_kind) == f"VALUE_KIND_{kind}"
    assert (from_value(found.last_value), found.last_steps, found.count) == (value, 1, 0)
    assert not found.HasField("last_number")
    assert _reports(metrics)[0]["note"] == value


def test_a_name_may_turn_from_a_number_to_text_and_back(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"x": 1.0}), ("training", 2, {"x": "two"}))
    assert metrics.summaries()["training", "x"].last_kind == summary_pb2.VALUE_KIND_STRING
    metrics.report(("training", 3, {"x": 3.0}), first=2)
    found = metrics.summaries()["training", "x"]
    assert (found.last_kind, found.last_number, found.count) == (summary_pb2.VALUE_KIND_NUMBER, 3, 2)
    assert not found.HasField("last_value")
    assert metrics.points("x") == [(1, 1), (3, 3)]


def test_whole_numbers_beyond_doubles_are_exact_in_reports_and_plotted(metrics: Metrics) -> None:
    big = 2**60 + 1
    metrics.report(("training", 1, {"tokens": 1.0}), ("training", 2, {"tokens": big}))
    assert metrics.points("tokens") == [(1, 1), (2, float(big))]
    assert _reports(metrics)[1] == {"tokens": big}
    assert metrics.summaries()["training", "tokens"].last_kind == summary_pb2.VALUE_KIND_NUMBER


def test_a_large_text_is_kept_in_its_report_and_left_out_of_the_summary(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"note": "x" * 100_000}))
    found = metrics.summaries()["training", "note"]
    assert found.last_kind == summary_pb2.VALUE_KIND_STRING
    assert not found.HasField("last_value")
    assert _reports(metrics)[0] == {"note": "x" * 100_000}


def test_too_many_trials_at_once_are_refused(metrics: Metrics) -> None:
    request = api.ListSummariesRequest(trial_ids=[metrics.trial] * 1001)
    with pytest.raises(InvalidArgumentError, match="ask for at most 1000"):
        metrics.call("ListSummaries", request)


def test_what_nobody_reported_is_empty(metrics: Metrics) -> None:
    assert metrics.points("loss") == []
    assert metrics.summaries() == {}
    assert _reports(metrics) == []
    metrics.report(("training", 1, {"loss": 1.0}))
    assert metrics.points("accuracy") == []
    assert metrics.points("loss", group="validation") == []


def test_a_downsampled_series_keeps_extremes_and_ends(metrics: Metrics) -> None:
    values = np.sin(np.arange(5000) / 50)
    values[1234], values[4321] = 9.0, -9.0
    for first in range(0, 5000, 1000):
        rows = [("training", step, {"loss": float(values[step])}) for step in range(first, first + 1000)]
        metrics.send(blocks_of(rows, first=first), first=first)
    found = metrics.series("loss", max_points=100)
    assert len(found.steps) <= 100
    assert found.total_points == 5000
    points = dict(zip(found.steps, found.values, strict=True))
    assert (points[1234], points[4321]) == (9, -9)
    assert (found.steps[0], found.steps[-1]) == (0, 4999)
    assert list(found.steps) == sorted(found.steps)
    assert all(points[step] == values[step] for step in points)
    assert len(metrics.points("loss", max_points=5000)) == 5000
    assert len(metrics.points("loss")) == 5000


@pytest.mark.parametrize("count", [-1, 0, 3])
def test_a_series_cannot_be_downsampled_to_less_than_its_extremes(metrics: Metrics, count: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"max_points is {count}; it must be 4 or more"):
        metrics.series("loss", max_points=count)


def test_a_series_too_long_for_a_response_is_refused_with_the_remedy(metrics: Metrics) -> None:
    for first in range(0, 150_000, 50_000):
        metrics.send([_wide_block(first, 50_000)], first=first)
    with pytest.raises(QuotaError, match="the series has 150000 points and 131072 fit"):
        metrics.series("loss")
    assert len(metrics.points("loss", max_points=1000)) <= 1000


def _wide_block(first: int, count: int) -> report_pb2.ReportBlock:
    numbers = range(first, first + count)
    return report_pb2.ReportBlock(
        group="training",
        names=["loss"],
        sequences=numbers,
        steps=numbers,
        times=np.zeros(count).tolist(),
        values=np.arange(count, dtype=np.float64).tolist(),
    )


def _pages(metrics: Metrics, **options: Any) -> list[list[report_pb2.Report]]:
    request = api.ListReportsRequest(trial_id=metrics.trial, **options)
    return metrics.pages("ListReports", request, "reports")


def _reports(metrics: Metrics) -> list[dict[str, Any]]:
    return [
        {name: from_value(value) for name, value in report.metrics.items()}
        for page in _pages(metrics)
        for report in page
    ]


def _history() -> dict[int, list[Report]]:
    first: list[Report] = [("training", step, {"loss": float(step), "lr": 0.1}) for step in range(0, 60, 3)]
    first += [("validation", step, {"accuracy": float(step)}) for step in range(0, 60, 20)]
    second: list[Report] = [("training", step, {"loss": -float(step)}) for step in range(30, 80, 5)]
    return {1: first, 2: second}


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("superseded", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
def test_pages_hold_every_report_once_by_group_and_steps(
    metrics: Metrics, size: int, superseded: bool, backwards: bool
) -> None:
    history = _history()
    for run, reports in history.items():
        for first in range(0, len(reports), 4):
            metrics.report(*reports[first : first + 4], first=first, run=run)
    order = "group, steps desc" if backwards else ""
    pages = _pages(metrics, page_size=size, include_superseded=superseded, order_by=order)
    assert all(len(page) == size for page in pages[:-1])
    found = [(one.group, one.steps, one.run) for page in pages for one in page]
    expected = sorted(
        (group, steps, run)
        for run, reports in history.items()
        for group, steps, _ in reports
        if superseded or run == 2 or group == "validation" or steps < 30
    )
    if backwards:
        expected.sort(key=lambda one: (one[0], -one[1], -one[2]))
    assert found == expected
    if size == 1 and not backwards:
        only = _pages(metrics, page_size=size, include_superseded=superseded, groups=["validation"])
        assert [one.steps for page in only for one in page] == [0, 20, 40]


def test_a_report_says_where_it_came_from(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"loss": 1.0}), ("training", 2, {"loss": 2.0}), run=4, source="rank3-77")
    report = _pages(metrics)[0][1]
    assert (report.run, report.source, report.sequence, report.steps) == (4, "rank3-77", 1, 2)
    assert report.time.ToNanoseconds() == 10 * 10**9


def test_a_page_of_large_reports_ends_before_it_is_too_large_for_a_message(metrics: Metrics) -> None:
    for number in range(5):
        metrics.report(("training", number, {"note": "x" * 1_500_000}), first=number)
    pages = _pages(metrics, page_size=5)
    assert [len(page) for page in pages] == [2, 2, 1]


def test_a_page_token_of_other_filters_is_refused(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"loss": 1.0}), ("training", 2, {"loss": 2.0}))
    request = api.ListReportsRequest(trial_id=metrics.trial, page_size=1)
    token = metrics.call("ListReports", request).next_page_token
    other = api.ListReportsRequest(trial_id=metrics.trial, runs=[1], page_size=1, page_token=token)
    with pytest.raises(InvalidArgumentError, match="other filters"):
        metrics.call("ListReports", other)


_TEN = [("training", step, {"loss": float(step)}) for step in range(10)]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"min_steps": 4}, range(4, 10)),
        ({"max_steps": 0}, range(1)),
        ({"min_steps": 2, "max_steps": 5}, range(2, 6)),
        ({"start_time": Timestamp(seconds=30)}, range(3, 10)),
        ({"end_time": Timestamp(seconds=30)}, range(3)),
        (
            {"min_steps": 1, "start_time": Timestamp(seconds=5), "end_time": Timestamp(seconds=61)},
            range(1, 7),
        ),
        ({"min_steps": 7, "max_steps": 6}, range(0)),
    ],
)
def test_series_and_reports_can_be_bounded_by_steps_and_time(
    metrics: Metrics, bounds: dict[str, Any], expected: range
) -> None:
    for first in range(0, 10, 3):
        metrics.report(*_TEN[first : first + 3], first=first)
    found = metrics.series("loss", **bounds)
    assert list(found.steps) == list(expected)
    assert found.total_points == len(expected)
    assert len(metrics.series("loss", max_points=4, **bounds).steps) <= 4
    for size in (2, 100):
        pages = _pages(metrics, page_size=size, **bounds)
        assert [one.steps for page in pages for one in page] == list(expected)


def test_reports_can_be_limited_to_runs(metrics: Metrics) -> None:
    for run, reports in _history().items():
        metrics.report(*reports, run=run)
    found = _pages(metrics, runs=[1], page_size=1000)[0]
    assert {one.run for one in found} == {1}
    # What a later run superseded stays out although that run's own reports are.
    assert max(one.steps for one in found if one.group == "training") == 27


@pytest.mark.parametrize("order", ["steps", "steps, group", "group desc", "group desc, steps", "loss"])
def test_an_order_of_reports_that_does_not_exist_is_refused(metrics: Metrics, order: str) -> None:
    with pytest.raises(InvalidArgumentError, match="order_by"):
        _pages(metrics, order_by=order)
