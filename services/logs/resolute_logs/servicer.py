"""The gRPC handlers of the logs service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceServicer
from resolute.contracts.clock import Clock
from resolute_logs.ingest.closing import close
from resolute_logs.ingest.parsing import parse_batch
from resolute_logs.ingest.writer import DROPPED, ingest
from resolute_logs.queries.filters import parse_filter
from resolute_logs.queries.following import follow_lines
from resolute_logs.queries.pages import read_page, to_line
from resolute_logs.queries.reader import LogReader
from resolute_logs.queries.subscriptions import parse_position, parse_subscriptions
from resolute_logs.store.deletion import delete_part
from resolute_logs.store.schema import INTAKE
from resolute_serving.database.engine import Database
from resolute_serving.following import PollIntervals
from resolute_serving.ingestion.batches import lock_order, parse, store
from resolute_serving.ingestion.byte_limits import ByteLimits, WorkspaceUsage, workspace_of_caller
from resolute_serving.ingestion.deletion import delete_experiment
from resolute_serving.notifier import Notifier
from resolute_serving.pagination import decode_token, encode_token, page_size, parse_order_by
from resolute_serving.validation import parse_uuid

_ORDER = {"line_id": None}


class Servicer(LogsServiceServicer):
    """Reads requests, calls the domain in a transaction, builds responses.

    Args:
        database: The service's database.
        limits: Storage limits of trials and workspaces.
        clock: Clock for times of deletion and for heartbeats.
        pace: The intervals at which followers poll without a notification.
    """

    def __init__(self, database: Database, *, limits: ByteLimits, clock: Clock, pace: PollIntervals) -> None:
        self._database = database
        self._limits = limits
        self._workspaces = WorkspaceUsage(database, INTAKE.trials, limits=limits, clock=clock)
        self._clock = clock
        self.notifier = Notifier[str]()
        """Wakes the streams of trials; close it before the server stops."""
        self._pace = pace
        self._reader = LogReader(database, clock=clock)

    async def IngestLines(self, request: api.IngestLinesRequest, context: Any) -> api.IngestLinesResponse:
        """Takes a batch of lines exactly once."""
        batch = await parse(request, parse_batch)
        workspace = workspace_of_caller()
        room = await self._workspaces.room(workspace)
        reached = await store(
            self._database,
            lambda link: ingest(link, batch, limits=self._limits, workspace=workspace, workspace_room=room),
            order=batch.origin.order,
        )
        self.notifier.notify(batch.origin.trial_id, batch.origin.experiment_id)
        return api.IngestLinesResponse(next_sequence=reached)

    async def ListLines(self, request: api.ListLinesRequest, context: Any) -> api.ListLinesResponse:
        """Lists lines that match a filter."""
        wanted = parse_filter(request.filter)
        (order,) = parse_order_by(request.order_by or "line_id", allowed=_ORDER)
        most = page_size(request.page_size)
        position = decode_token(request)
        if position is None and request.HasField("behind_line_id"):
            position = parse_position(request.behind_line_id, field="behind_line_id")

        def work(connection: Connection) -> api.ListLinesResponse:
            page = read_page(connection, wanted, position=position, descending=order.descending, most=most)
            return api.ListLinesResponse(
                lines=[to_line(line, page.trials) for line in page.lines],
                next_page_token=encode_token(request, page.position) if page.more else "",
            )

        return await self._database.read(work)

    async def FollowLines(
        self, request: api.FollowLinesRequest, context: Any
    ) -> AsyncIterator[api.FollowLinesResponse]:
        """Sends lines that match filters as they arrive."""
        requests = parse_subscriptions(request)
        async for news in follow_lines(
            requests,
            reader=self._reader,
            notifier=self.notifier,
            clock=self._clock,
            pace=self._pace,
        ):
            yield news

    async def CloseTrialLogs(
        self, request: api.CloseTrialLogsRequest, context: Any
    ) -> api.CloseTrialLogsResponse:
        """Marks the log of a trial as complete."""
        trial = parse_uuid(request.trial_id, field="trial_id")
        experiment = await self._database.read(lambda link: INTAKE.experiment_of(link, trial))
        # After the lines of the trial, which lock it first and what is closed of it then.
        order = f"{lock_order(experiment, trial)}/closed"
        now = self._clock.time()
        await self._database.write(lambda link: close(link, trial, now=now), order=order)
        self.notifier.notify(trial)
        return api.CloseTrialLogsResponse()

    async def ListDroppedLines(
        self, request: api.ListDroppedLinesRequest, context: Any
    ) -> api.ListDroppedLinesResponse:
        """Lists trials whose lines were dropped."""
        experiment = parse_uuid(request.experiment_id, field="experiment_id")
        dropped = await self._database.read(lambda link: INTAKE.dropped(link, experiment))
        return api.ListDroppedLinesResponse(
            trials=[
                api.ListDroppedLinesResponse.DroppedLines(
                    trial_id=trial,
                    lines=usage.dropped,
                    bytes=usage.dropped_bytes,
                    explanation=usage.explain(DROPPED),
                )
                for trial, usage in dropped
            ]
        )

    async def DeleteExperimentLogs(
        self, request: api.DeleteExperimentLogsRequest, context: Any
    ) -> api.DeleteExperimentLogsResponse:
        """Removes all lines of an experiment. After a failure, a repeated call continues."""
        await delete_experiment(
            self._database, INTAKE, request.experiment_id, clock=self._clock, delete_part=delete_part
        )
        return api.DeleteExperimentLogsResponse()
