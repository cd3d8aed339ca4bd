"""Batches of reports for tests of the metrics service, and the service without a network."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.databases.prepared import migrate

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import report_pb2, summary_pb2
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.values import to_value
from resolute_metrics.limits import Limits
from resolute_metrics.servicer import Servicer
from resolute_serving.database.engine import Database
from resolute_serving.following import PollIntervals

Report = tuple[str, int, Mapping[str, Any]]
"""Group, steps and values."""


def block(
    group: str, sequences: Sequence[int], steps: Sequence[int], **metrics: Sequence[float]
) -> report_pb2.ReportBlock:
    """One block of numbers, given by columns; times are ten seconds a sequence."""
    names = list(metrics)
    return report_pb2.ReportBlock(
        group=group,
        names=names,
        sequences=sequences,
        steps=steps,
        times=[10.0 * sequence for sequence in sequences],
        values=[float(metrics[name][row]) for row in range(len(sequences)) for name in names],
    )


def blocks_of(reports: Sequence[Report], *, first: int = 0) -> list[report_pb2.ReportBlock]:
    """Packs reports as a sender does: one block for each group and set of names."""
    found: dict[tuple[str, tuple[str, ...]], report_pb2.ReportBlock] = {}
    for sequence, (group, steps, values) in enumerate(reports, first):
        numbers = {name: value for name, value in values.items() if isinstance(value, float)}
        target = found.setdefault(
            (group, tuple(numbers)), report_pb2.ReportBlock(group=group, names=list(numbers))
        )
        others = {name: to_value(value) for name, value in values.items() if name not in numbers}
        if others:
            target.extras.append(report_pb2.ReportBlock.Extra(row=len(target.sequences), values=others))
        target.sequences.append(sequence)
        target.steps.append(steps)
        target.times.append(10.0 * sequence)
        target.values.extend(numbers.values())
    return list(found.values())


@dataclass
class Metrics:
    """The service's handlers on a database of their own."""

    servicer: Servicer
    database: Database
    experiment: str = field(default_factory=lambda: str(uuid.uuid4()))
    trial: str = field(default_factory=lambda: str(uuid.uuid4()))

    def anew(self) -> Metrics:
        """The same service with a trial and an experiment that it has never heard of."""
        return Metrics(self.servicer, self.database)

    def call(self, method: str, request: Any) -> Any:
        """Calls a handler."""

        async def handle() -> Any:
            return await getattr(self.servicer, method)(request, None)

        return asyncio.run(handle())

    def request(
        self,
        blocks: Sequence[report_pb2.ReportBlock],
        *,
        first: int = 0,
        count: int | None = None,
        run: int = 1,
        source: str = "rank0",
        trial: str = "",
        experiment: str = "",
        metric: str = "accuracy",
        smaller: bool = False,
    ) -> api.IngestReportsRequest:
        """Makes one batch."""
        return api.IngestReportsRequest(
            trial_id=trial or self.trial,
            run=run,
            source=source,
            experiment_id=experiment or self.experiment,
            first_sequence=first,
            count=sum(len(one.sequences) for one in blocks) if count is None else count,
            blocks=blocks,
            searcher_metric=metric or None,
            smaller_is_better=smaller,
        )

    def send(self, blocks: Sequence[report_pb2.ReportBlock], **options: Any) -> api.IngestReportsResponse:
        """Sends one batch, with the options of ``request``."""
        response: api.IngestReportsResponse = self.call("IngestReports", self.request(blocks, **options))
        return response

    def report(self, *reports: Report, first: int = 0, **options: Any) -> api.IngestReportsResponse:
        """Sends reports as one batch."""
        return self.send(blocks_of(reports, first=first), first=first, **options)

    def series(self, name: str, *, group: str = "training", **options: Any) -> api.GetSeriesResponse:
        """The series of a metric."""
        request = api.GetSeriesRequest(trial_id=self.trial, group=group, name=name, **options)
        response: api.GetSeriesResponse = self.call("GetSeries", request)
        return response

    def points(self, name: str, **options: Any) -> list[tuple[int, float]]:
        """The steps and values of a metric."""
        found = self.series(name, **options)
        return list(zip(found.steps, found.values, strict=True))

    def summaries(self, *, group: str = "") -> dict[tuple[str, str], summary_pb2.Summary]:
        """The summaries by group and name."""
        request = api.ListSummariesRequest(trial_ids=[self.trial], groups=[group] if group else [])
        found = [one for page in self.pages("ListSummaries", request, "summaries") for one in page]
        return {(one.group, one.name): one for one in found}

    def pages(self, method: str, request: Any, field: str) -> list[list[Any]]:
        """All pages of a list."""
        pages = []
        while True:
            response = self.call(method, request)
            pages.append(list(getattr(response, field)))
            request.page_token = response.next_page_token
            if not request.page_token:
                return pages

    def best(self) -> api.GetBestValidationResponse:
        """The best of the experiment and of the trial."""
        request = api.GetBestValidationRequest(experiment_id=self.experiment, trial_ids=[self.trial])
        response: api.GetBestValidationResponse = self.call("GetBestValidation", request)
        return response

    def delete(self) -> None:
        """Deletes the experiment."""
        request = api.DeleteExperimentMetricsRequest(experiment_id=self.experiment)
        self.call("DeleteExperimentMetrics", request)


@contextmanager
def metrics_on(
    database_url: str,
    *,
    limits: Limits | None = None,
    clock: Clock = SYSTEM_CLOCK,
    pace: PollIntervals | None = None,
) -> Iterator[Metrics]:
    """The service's handlers on a fresh or an old database."""
    database = Database(database_url, name="metrics")
    try:
        migrate(database.engine, package="resolute_metrics", schema="metrics")
        yield Metrics(
            Servicer(database, limits=limits or Limits(), clock=clock, pace=pace or PollIntervals()), database
        )
    finally:
        database.close()
