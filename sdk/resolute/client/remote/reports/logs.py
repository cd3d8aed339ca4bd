"""The log lines of trials."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from resolute.api.logs.v1 import line_pb2, logs_service_pb2, logs_service_pb2_grpc
from resolute.client.connection.paging import MAX_PAGE_SIZE, all_items
from resolute.client.connection.resumed_stream import ResumedStream
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import LineRecord
from resolute.client.schema.states import LogLevel
from resolute.contracts.messages import enum_member

_LEVELS: Mapping[LogLevel, line_pb2.Level.ValueType] = {
    enum_member(LogLevel, line_pb2.Level.DESCRIPTOR, number): number for number in line_pb2.Level.values()
}


@dataclass(frozen=True, kw_only=True)
class LineFilter:
    """A filter of log lines. Every set field must match."""

    ranks: tuple[int, ...] = ()
    min_level: LogLevel = LogLevel.UNSPECIFIED
    time_from: datetime | None = None
    """Not before; a time without a zone is local."""
    time_until: datetime | None = None
    """Before; a time without a zone is local."""
    text: str = ""
    """Text that the line contains, in any case."""
    regex: str = ""
    """Regular expression of RE2 that is found in the line."""
    stdtypes: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()
    containers: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    """Names of machines."""

    def with_runs(self, runs: tuple[int, ...]) -> LineFilter:
        """The same filter, for lines of these runs only."""
        return dataclasses.replace(self, runs=runs)


class Logs:
    """Calls of the logs service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(logs_service_pb2_grpc.LogsServiceStub)

    def list(
        self,
        trial_uuid: str,
        wanted: LineFilter | None = None,
        *,
        head: int | None = None,
        tail: int | None = None,
    ) -> Iterator[LineRecord]:
        """Yields lines, oldest first.

        Args:
            trial_uuid: UUID of the trial.
            wanted: Which lines; None for all.
            head: Only this many of the oldest.
            tail: Only this many of the newest; not together with ``head``.
        """
        request = logs_service_pb2.ListLinesRequest(
            filter=_message(trial_uuid, wanted), order_by="line_id" if tail is None else "line_id desc"
        )
        limit = head if tail is None else tail
        records = (
            convert.line(line)
            for line in all_items(
                self._stub.ListLines, request, "lines", limit=limit, page_size=MAX_PAGE_SIZE
            )
        )
        if tail is None:
            yield from records
        else:
            newest_first = deque(records)
            yield from reversed(newest_first)

    def dropped(self, experiment_uuid: str) -> dict[str, str]:
        """Tells of which trials of an experiment lines were dropped: what, by UUID of the trial."""
        request = logs_service_pb2.ListDroppedLinesRequest(experiment_id=experiment_uuid)
        return {trial.trial_id: trial.explanation for trial in self._stub.ListDroppedLines(request).trials}

    def read(
        self,
        trial_uuid: str,
        wanted: LineFilter | None = None,
        *,
        head: int | None = None,
        tail: int | None = None,
        follow: bool = False,
        finished: Callable[[], bool] | None = None,
    ) -> Iterator[LineRecord]:
        """Yields lines as ``list`` does and, with ``follow``, those that come after them.

        Args:
            trial_uuid: UUID of the trial.
            wanted: Which lines; None for all.
            head: Only this many of the oldest; not together with ``tail`` or ``follow``.
            tail: Only this many of the newest, before those that are followed.
            follow: Go on until the trial has ended.
            finished: As in ``follow``.
        """
        last = 0
        if not follow or tail is not None:
            for line in self.list(trial_uuid, wanted, head=head, tail=tail):
                last = line.line_id
                yield line
        if follow:
            followed = self.follow(trial_uuid, wanted, after_line_id=last, finished=finished)
            try:
                yield from followed
            finally:
                followed.cancel()

    def follow(
        self,
        trial_uuid: str,
        wanted: LineFilter | None = None,
        *,
        after_line_id: int = 0,
        finished: Callable[[], bool] | None = None,
    ) -> FollowedLines:
        """Follows lines as they arrive, until the trial has ended.

        Args:
            trial_uuid: UUID of the trial.
            wanted: Which lines; None for all.
            after_line_id: Only lines after this one; zero for all.
            finished: Asked when the service ends the stream: whether the trial has ended, and not only the
                service stopped. None to take its word for it.
        """
        request = logs_service_pb2.FollowLinesRequest()
        request.subscriptions.add(
            key=trial_uuid, filter=_message(trial_uuid, wanted), after_line_id=after_line_id
        )
        return FollowedLines(self._stub, request, finished=finished)


class FollowedLines:
    """Lines as they arrive. Iterate it; ``cancel`` ends it from any thread.

    It continues after an outage of the service, without repeating a line.

    Args:
        stub: The logs service.
        request: The subscription. Its cursor advances with the lines.
        finished: As in ``Logs.follow``.
    """

    def __init__(
        self,
        stub: logs_service_pb2_grpc.LogsServiceStub,
        request: logs_service_pb2.FollowLinesRequest,
        *,
        finished: Callable[[], bool] | None,
    ) -> None:
        self._stub = stub
        self._request = request
        self._finished = finished
        self._trial_ended = finished is None
        self._stream = ResumedStream[Any](self._open, finished=self._is_complete)

    def __iter__(self) -> Iterator[LineRecord]:
        for response in self._stream:
            (subscription,) = self._request.subscriptions
            for line in response.lines:
                subscription.after_line_id = line.line_id
                yield convert.line(line)
            if response.key:
                subscription.after_line_id = response.cursor

    def cancel(self) -> None:
        """Ends the iteration, also one that waits for a line."""
        self._stream.cancel()

    def _is_complete(self) -> bool:
        # Lines may have come between the end of the stream and that of the trial: only a stream that was
        # opened when the trial had ended is known to have brought the last one.
        if self._trial_ended or self._finished is None:
            return True
        self._trial_ended = self._finished()
        return False

    def _open(self) -> Any:
        return self._stub.FollowLines(self._request)


def _message(trial_uuid: str, wanted: LineFilter | None) -> line_pb2.LineFilter:
    wanted = wanted or LineFilter()
    message = line_pb2.LineFilter(
        trial_id=trial_uuid,
        ranks=wanted.ranks,
        min_level=_LEVELS[wanted.min_level],
        text=wanted.text,
        regex=wanted.regex,
        stdtypes=wanted.stdtypes,
        origins=wanted.origins,
        runs=wanted.runs,
        containers=wanted.containers,
        agents=wanted.agents,
    )
    if wanted.time_from is not None:
        message.start_time.FromDatetime(wanted.time_from.astimezone(timezone.utc))
    if wanted.time_until is not None:
        message.end_time.FromDatetime(wanted.time_until.astimezone(timezone.utc))
    return message
