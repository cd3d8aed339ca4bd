"""Reads the training reports that a guard judges from the metrics service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from resolute.api.metrics.v1 import metrics_service_pb2, report_pb2
from resolute_experiments.clients import Clients

_GROUP = "training"
_PAGE = 1000
_DEADLINE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Report:
    """A training report."""

    steps: int
    value: float | None
    """Of the metric; None if it has none."""


async def reports_of_run(
    trial_id: str, run: int, metric: str, *, after_steps: int, clients: Clients
) -> AsyncIterator[Report]:
    """The reports of a run after some steps, in their order.

    Raises:
        ResoluteError: The metrics service does not answer; to be repeated.
    """
    request = metrics_service_pb2.ListReportsRequest(
        trial_id=trial_id,
        groups=[_GROUP],
        runs=[run],
        min_steps=after_steps + 1,
        include_superseded=True,
        page_size=_PAGE,
    )
    while True:
        response = await clients.metrics.ListReports(request, timeout=_DEADLINE_SECONDS)
        for report in response.reports:
            yield Report(report.steps, _value(report, metric))
        if not response.next_page_token:
            return
        request.page_token = response.next_page_token


async def good_values(
    trial_id: str,
    metric: str,
    *,
    until_steps: int,
    most: int,
    good_steps: Mapping[int, int],
    clients: Clients,
) -> list[float]:
    """The last good values of a trial until some steps, in their order.

    Args:
        trial_id: The trial.
        metric: Name of the metric.
        until_steps: The last steps.
        most: So many at most.
        good_steps: Runs that the guard ended, each with the steps to which its values were good.
        clients: The other services.

    Raises:
        ResoluteError: The metrics service does not answer; to be repeated.
    """
    if not most:
        return []
    request = metrics_service_pb2.ListReportsRequest(
        trial_id=trial_id,
        groups=[_GROUP],
        max_steps=until_steps,
        order_by="group, steps desc",
        page_size=min(most, _PAGE),
    )
    response = await clients.metrics.ListReports(request, timeout=_DEADLINE_SECONDS)
    newest_first = (
        _value(report, metric)
        for report in response.reports
        if report.steps <= good_steps.get(report.run, until_steps)
    )
    return [value for value in newest_first if value is not None][::-1]


def _value(report: report_pb2.Report, metric: str) -> float | None:
    value = report.metrics.get(metric)
    kind = None if value is None else value.WhichOneof("kind")
    return float(getattr(value, kind)) if kind in {"double_value", "int_value"} else None
