"""The gRPC handlers of the metrics service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import astuple
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceServicer
from resolute.contracts.clock import Clock
from resolute.contracts.messages import to_message
from resolute.errors import QuotaError
from resolute_metrics.ingest.fitting import DROPPED
from resolute_metrics.ingest.parsing import parse_batch
from resolute_metrics.ingest.writer import ingest
from resolute_metrics.limits import Limits
from resolute_metrics.queries import validation_changes, validations
from resolute_metrics.queries.curves.downsampling import MAX_POINTS, downsample
from resolute_metrics.queries.curves.ranges import Range, parse_range
from resolute_metrics.queries.curves.series import read_series
from resolute_metrics.queries.curves.series_pages import read_page
from resolute_metrics.queries.last_steps import last_steps
from resolute_metrics.queries.reports import Position, StoredReport, is_report_position, read_reports
from resolute_metrics.queries.requests import (
    parse_max_points,
    parse_points_of_each,
    parse_report_filter,
    parse_series,
    parse_subscriptions,
    parse_summary_filter,
    parse_trials,
)
from resolute_metrics.queries.responses import (
    MAX_BYTES,
    add_summary,
    to_best,
    to_change,
    to_points,
    to_report,
    to_trial_validations,
)
from resolute_metrics.queries.summaries import Summary
from resolute_metrics.queries.summary_pages import FIELDS, is_position, position_of, read_summaries
from resolute_metrics.queries.watching import watch_series
from resolute_metrics.store.deletion import delete_part
from resolute_metrics.store.schema import INTAKE
from resolute_serving.database.engine import Database
from resolute_serving.database.remembered import Remembered
from resolute_serving.following import PollIntervals
from resolute_serving.ingestion.batches import parse, store
from resolute_serving.ingestion.byte_limits import Usage, WorkspaceUsage, workspace_of_caller
from resolute_serving.ingestion.deletion import delete_experiment
from resolute_serving.notifier import Notifier
from resolute_serving.pagination import OrderBy, decode_token, encode_token, page_size, parse_order_by
from resolute_serving.validation import parse_uuid


class Servicer(MetricsServiceServicer):
    """Reads requests, calls the domain in a transaction, builds responses.

    Args:
        database: The service's database.
        limits: Limits of each trial.
        clock: Clock for times of deletion and for heartbeats.
        pace: The intervals at which watches poll without a notification.
    """

    def __init__(self, database: Database, *, limits: Limits, clock: Clock, pace: PollIntervals) -> None:
        self._database = database
        self._limits = limits
        self._workspaces = WorkspaceUsage(database, INTAKE.trials, limits=limits.bytes, clock=clock)
        self._clock = clock
        self.notifier = Notifier[str]()
        """Wakes the streams of trials; close it before the server stops."""
        self._pace = pace
        self._newest_validation = Remembered(database, validation_changes.newest)

    async def IngestReports(
        self, request: api.IngestReportsRequest, context: Any
    ) -> api.IngestReportsResponse:
        """Takes a batch of reports exactly once."""
        batch = await parse(request, parse_batch)
        workspace = workspace_of_caller()
        room = await self._workspaces.room(workspace)
        outcome = await store(
            self._database,
            lambda link: ingest(link, batch, limits=self._limits, workspace=workspace, workspace_room=room),
            order=batch.origin.order,
        )
        self.notifier.notify(batch.origin.trial_id)
        return api.IngestReportsResponse(
            next_sequence=outcome.next_sequence,
            refusals=[
                api.IngestReportsResponse.Refusal(sequence=refusal.sequence, message=refusal.message)
                for refusal in outcome.refusals
            ],
            dropped=_dropped(batch.origin.trial_id, outcome.usage) if outcome.usage.dropped else None,
        )

    async def ListSummaries(
        self, request: api.ListSummariesRequest, context: Any
    ) -> api.ListSummariesResponse:
        """Lists summaries of metrics."""
        wanted = parse_summary_filter(request)
        order = parse_order_by(request.order_by, allowed=FIELDS) if request.order_by else []
        most = page_size(request.page_size)
        after = decode_token(request, fits=lambda value: is_position(value, order))

        def work(connection: Connection) -> api.ListSummariesResponse:
            summaries = read_summaries(connection, wanted, order, after=after)
            return _summaries(request, summaries, order, most)

        return await self._database.read(work)

    async def GetSeries(self, request: api.GetSeriesRequest, context: Any) -> api.GetSeriesResponse:
        """Gets the series of one metric of one trial."""
        trial = parse_uuid(request.trial_id, field="trial_id")
        most, within = parse_max_points(request), parse_range(request)
        return await self._database.read(lambda link: _series(link, trial, request, within, most))

    async def ListSeries(self, request: api.ListSeriesRequest, context: Any) -> api.ListSeriesResponse:
        """Lists many series in one range."""
        wanted, within, most = parse_series(request), parse_range(request), parse_points_of_each(request)
        first = decode_token(request) or 0

        def work(connection: Connection) -> api.ListSeriesResponse:
            series = read_page(connection, wanted[first:], within=within, most=most)
            done = first + len(series)
            return api.ListSeriesResponse(
                series=[to_points(curve.points, curve.total) for curve in series],
                next_page_token=encode_token(request, done) if done < len(wanted) else "",
            )

        return await self._database.read(work)

    async def WatchSeries(
        self, request: api.WatchSeriesRequest, context: Any
    ) -> AsyncIterator[api.WatchSeriesResponse]:
        """Sends series, then their new points as they arrive."""
        requests = parse_subscriptions(request)
        async for change in watch_series(
            requests, database=self._database, notifier=self.notifier, clock=self._clock, pace=self._pace
        ):
            yield api.WatchSeriesResponse() if change is None else to_change(change)

    async def ListReports(self, request: api.ListReportsRequest, context: Any) -> api.ListReportsResponse:
        """Lists reports of a trial in order."""
        trial = parse_uuid(request.trial_id, field="trial_id")
        wanted, most = parse_report_filter(request), page_size(request.page_size)
        token = decode_token(request, fits=is_report_position)
        after = None if token is None else Position(*token)

        def work(connection: Connection) -> api.ListReportsResponse:
            key = INTAKE.find_trial(connection, trial)
            if key is None:
                return api.ListReportsResponse()
            return _reports(request, read_reports(connection, key, wanted, after=after, most=most + 1), most)

        return await self._database.read(work)

    async def GetBestValidation(
        self, request: api.GetBestValidationRequest, context: Any
    ) -> api.GetBestValidationResponse:
        """Returns the best validation of an experiment, and of trials of it."""
        experiment = parse_uuid(request.experiment_id, field="experiment_id")
        trials = parse_trials(request.trial_ids)

        def work(connection: Connection) -> api.GetBestValidationResponse:
            best = validations.best_of_experiment(connection, experiment)
            return api.GetBestValidationResponse(
                experiment_best=None if best is None else to_best(best),
                trial_bests=map(
                    to_best, validations.best_of_trials(connection, trials, experiment_id=experiment)
                ),
            )

        return await self._database.read(work)

    async def ListTrialValidations(
        self, request: api.ListTrialValidationsRequest, context: Any
    ) -> api.ListTrialValidationsResponse:
        """Lists changes of the best and the last validations of trials."""
        limit = page_size(request.page_size)
        newest = await self._newest_validation.get()
        if newest is not None and request.after_revision >= newest:
            # Who keeps a copy asks every other second, and mostly has all.
            return api.ListTrialValidationsResponse(latest_revision=newest)
        if newest is None:
            order = validation_changes.NUMBERING_ORDER
            await self._database.write(validation_changes.number_changes, order=order)
        changes = await self._database.read(
            lambda link: validation_changes.list_changes(link, after=request.after_revision, limit=limit)
        )
        return api.ListTrialValidationsResponse(
            trials=map(to_trial_validations, changes.trials), latest_revision=changes.latest_revision
        )

    async def ListLastSteps(
        self, request: api.ListLastStepsRequest, context: Any
    ) -> api.ListLastStepsResponse:
        """Lists the last reported step of trials."""
        trials = parse_trials(request.trial_ids)
        found = await self._database.read(lambda link: last_steps(link, trials))
        kind = api.ListLastStepsResponse.LastSteps
        return api.ListLastStepsResponse(trials=[to_message(kind, steps) for steps in found])

    async def ListDroppedReports(
        self, request: api.ListDroppedReportsRequest, context: Any
    ) -> api.ListDroppedReportsResponse:
        """Lists trials whose reports were dropped."""
        experiment = parse_uuid(request.experiment_id, field="experiment_id")
        dropped = await self._database.read(lambda link: INTAKE.dropped(link, experiment))
        return api.ListDroppedReportsResponse(trials=[_dropped(trial, usage) for trial, usage in dropped])

    async def DeleteExperimentMetrics(
        self, request: api.DeleteExperimentMetricsRequest, context: Any
    ) -> api.DeleteExperimentMetricsResponse:
        """Removes all reports of an experiment. After a failure, a repeated call continues."""
        await delete_experiment(
            self._database, INTAKE, request.experiment_id, clock=self._clock, delete_part=delete_part
        )
        return api.DeleteExperimentMetricsResponse()


def _dropped(trial_id: str, usage: Usage) -> api.DroppedReports:
    return api.DroppedReports(
        trial_id=trial_id,
        reports=usage.dropped,
        bytes=usage.dropped_bytes,
        explanation=usage.explain(DROPPED),
    )


def _summaries(
    request: api.ListSummariesRequest, summaries: Iterable[Summary], order: Sequence[OrderBy], most: int
) -> api.ListSummariesResponse:
    response = api.ListSummariesResponse()
    size, last = 0, None
    for summary in summaries:
        size += add_summary(response, summary)
        if last is not None and (len(response.summaries) > most or size > MAX_BYTES):
            del response.summaries[-1]
            response.next_page_token = encode_token(request, position_of(last, order))
            break
        last = summary
    return response


def _series(
    connection: Connection, trial_id: str, request: api.GetSeriesRequest, within: Range, most: int | None
) -> api.GetSeriesResponse:
    trial = INTAKE.find_trial(connection, trial_id)
    if trial is None:
        return api.GetSeriesResponse()
    series = read_series(
        connection,
        trial,
        group=request.group,
        name=request.name,
        superseded=request.include_superseded,
        within=within,
    )
    total = len(series)
    if min(most or total, total) > MAX_POINTS:
        raise QuotaError(
            f"the series has {total} points and {MAX_POINTS} fit into one response; "
            "set max_points, or list the reports page by page"
        )
    if most is not None and most < total:
        series = series.at(downsample(series.values, most))
    return api.GetSeriesResponse(
        steps=series.steps.tolist(),
        values=series.values.tolist(),
        times=series.times.tolist(),
        total_points=total,
    )


def _reports(
    request: api.ListReportsRequest, reports: Sequence[StoredReport], most: int
) -> api.ListReportsResponse:
    response = api.ListReportsResponse()
    size = 0
    for number, report in enumerate(reports):
        message = to_report(report)
        size += message.ByteSize()
        if number == most or (number and size > MAX_BYTES):
            response.next_page_token = encode_token(request, list(astuple(reports[number - 1].position)))
            break
        response.reports.append(message)
    return response
