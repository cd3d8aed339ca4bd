"""The reported metrics of trials."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from resolute.api.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from resolute.client.connection.paging import MAX_PAGE_SIZE, all_items
from resolute.client.connection.resumed_stream import ResumedStream
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import BestRecord, MetricSummary, SeriesPoint, TrialMetrics, TrialRecord
from resolute.contracts.messages import datetime_field

_MOST_TRIALS = 1000


@dataclass(frozen=True)
class BestValidations:
    """The best validation of an experiment, and of each requested trial."""

    experiment: BestRecord | None
    trials: dict[str, BestRecord]
    """By UUID of the trial; trials without a validation are missing."""


class WatchedSeries:
    """A growing series. Iterating it yields its points after each change; ``cancel`` ends it.

    It continues after an outage of the service. It does not end by itself.

    Args:
        open_stream: Opens the stream of changes.
    """

    def __init__(self, open_stream: Callable[[], Any]) -> None:
        self._stream = ResumedStream[Any](open_stream)

    def __iter__(self) -> Iterator[list[SeriesPoint]]:
        points: list[SeriesPoint] = []
        for message in self._stream:
            if message.reset:
                points = []
            elif not message.steps:
                continue
            points = [*points, *map(SeriesPoint, message.steps, message.values, message.times)]
            yield points

    def cancel(self) -> None:
        """Ends the iteration, also one that waits for a point."""
        self._stream.cancel()


class Metrics:
    """Calls of the metrics service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(metrics_service_pb2_grpc.MetricsServiceStub)

    def best(self, experiment_uuid: str, trial_uuids: Iterable[str] = ()) -> BestValidations:
        """Returns the best validation of an experiment, and of each asked trial."""
        uuids = list(trial_uuids)
        whole: BestRecord | None = None
        trials: dict[str, BestRecord] = {}
        for start in range(0, max(len(uuids), 1), _MOST_TRIALS):
            request = metrics_service_pb2.GetBestValidationRequest(
                experiment_id=experiment_uuid, trial_ids=uuids[start : start + _MOST_TRIALS]
            )
            response = self._stub.GetBestValidation(request)
            if response.HasField("experiment_best"):
                whole = convert.best(response.experiment_best)
            trials |= {best.trial_id: convert.best(best) for best in response.trial_bests}
        return BestValidations(whole, trials)

    def dropped(self, experiment_uuid: str) -> dict[str, str]:
        """Tells of which trials of an experiment reports were dropped: what, by UUID of the trial."""
        request = metrics_service_pb2.ListDroppedReportsRequest(experiment_id=experiment_uuid)
        return {trial.trial_id: trial.explanation for trial in self._stub.ListDroppedReports(request).trials}

    def summaries(
        self, trial_uuids: Iterable[str], *, group: str = "", names: Iterable[str] = ()
    ) -> list[MetricSummary]:
        """Lists the metrics of trials with their summaries; by trial, group and name.

        Args:
            trial_uuids: UUIDs of the trials.
            group: Only this group; empty for all.
            names: Only these metrics, by dotted name; empty for all.
        """
        uuids = list(trial_uuids)
        collected: list[MetricSummary] = []
        for start in range(0, len(uuids), _MOST_TRIALS):
            request = metrics_service_pb2.ListSummariesRequest(
                trial_ids=uuids[start : start + _MOST_TRIALS], groups=_groups(group), names=names
            )
            collected += map(
                convert.summary,
                all_items(self._stub.ListSummaries, request, "summaries", page_size=MAX_PAGE_SIZE),
            )
        return collected

    def series(self, trial_uuid: str, *, group: str, name: str, max_points: int = 0) -> list[SeriesPoint]:
        """Gives the values of one metric by steps; with ``max_points`` downsampled so that extremes stay."""
        request = metrics_service_pb2.GetSeriesRequest(
            trial_id=trial_uuid, group=group, name=name, max_points=max_points or None
        )
        response = self._stub.GetSeries(request)
        return list(map(SeriesPoint, response.steps, response.values, response.times))

    def watch(self, trial_uuid: str, *, group: str, name: str, max_points: int = 0) -> WatchedSeries:
        """Follows the values of one metric as they arrive.

        Args:
            trial_uuid: UUID of the trial; it may have reported nothing yet.
            group: Group of the metric.
            name: Its dotted name.
            max_points: About how many points are kept, so that extremes stay; zero for 1000.
        """
        request = metrics_service_pb2.WatchSeriesRequest()
        request.subscriptions.add(
            key=trial_uuid, trial_id=trial_uuid, group=group, name=name, max_points=max_points or None
        )
        return WatchedSeries(lambda: self._stub.WatchSeries(request))

    def reports(self, trial: TrialRecord, *, group: str = "") -> Iterator[TrialMetrics]:
        """Yields the reports of a trial by group and steps; ``group`` is empty for all.

        Of a metric that a run reported several times at the same steps, the last report has it.
        """
        request = metrics_service_pb2.ListReportsRequest(trial_id=trial.uuid, groups=_groups(group))
        messages = all_items(self._stub.ListReports, request, "reports", page_size=MAX_PAGE_SIZE)
        reports = (convert.report(message, trial.id) for message in messages)
        for _, at_once in itertools.groupby(
            reports, lambda one: (one.group, one.trial_run_id, one.steps_completed)
        ):
            yield from _without_replaced(list(at_once))

    def first_report(self, trial: TrialRecord, *, run: int, group: str) -> datetime | None:
        """Returns when a run first reported metrics of a group; None if it has not."""
        request = metrics_service_pb2.ListReportsRequest(
            trial_id=trial.uuid, groups=[group], runs=[run], include_superseded=True, page_size=1
        )
        reports = self._stub.ListReports(request).reports
        return datetime_field(reports[0], "time") if reports else None


def _without_replaced(reports: list[TrialMetrics]) -> Iterator[TrialMetrics]:
    later: set[str] = set()
    kept: list[TrialMetrics] = []
    for report in reversed(reports):
        metrics = {name: value for name, value in report.metrics.items() if name not in later}
        later.update(metrics)
        if metrics or not report.metrics:
            kept.append(replace(report, metrics=metrics))
    return reversed(kept)


def _groups(group: str) -> list[str]:
    return [group] if group else []
