"""What trials reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resolute.api.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from resolute.client import convert
from resolute.client.records import BestRecord, MetricSummary, SeriesPoint, TrialMetrics, TrialRecord
from resolute.client.remote.paging import all_items
from resolute.client.session import Session

_MOST_TRIALS = 1000


@dataclass(frozen=True)
class BestValidations:
    """The best validation of an experiment, and of each of its trials that was asked for."""

    experiment: BestRecord | None
    trials: dict[str, BestRecord]
    """By UUID of the trial; trials without a validation are missing."""


class Metrics:
    """Calls of the metrics service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(metrics_service_pb2_grpc.MetricsServiceStub)

    def best(self, experiment_uuid: str, trial_uuids: Iterable[str] = ()) -> BestValidations:
        """Gives the best validation of an experiment, and of each asked trial."""
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

    def summaries(self, trial_uuids: Iterable[str], *, group: str = "") -> list[MetricSummary]:
        """Lists the metrics of trials with their summaries; ``group`` is empty for all."""
        uuids = list(trial_uuids)
        found: list[MetricSummary] = []
        for start in range(0, len(uuids), _MOST_TRIALS):
            request = metrics_service_pb2.ListSummariesRequest(
                trial_ids=uuids[start : start + _MOST_TRIALS], group=group
            )
            found += [convert.summary(item) for item in self._stub.ListSummaries(request).summaries]
        return found

    def series(self, trial_uuid: str, *, group: str, name: str, max_points: int = 0) -> list[SeriesPoint]:
        """Gives the values of one metric by steps; with ``max_points`` thinned so that extremes stay."""
        request = metrics_service_pb2.GetSeriesRequest(
            trial_id=trial_uuid, group=group, name=name, max_points=max_points
        )
        found = self._stub.GetSeries(request)
        return list(map(SeriesPoint, found.steps, found.values, found.times))

    def reports(self, trial: TrialRecord, *, group: str = "") -> Iterator[TrialMetrics]:
        """Yields the reports of a trial by group and steps; ``group`` is empty for all."""
        request = metrics_service_pb2.ListReportsRequest(trial_id=trial.uuid, group=group)
        for message in all_items(self._stub.ListReports, request, "reports"):
            yield convert.report(message, trial.id)
