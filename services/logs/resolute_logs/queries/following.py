"""Sends lines as they arrive."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.contracts.clock import Clock
from resolute_logs.queries.filters import Filter
from resolute_logs.queries.reader import LogReader
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.notifier import Notifier


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """The request to follow one log."""

    key: str
    """How the client tells it from others."""
    wanted: Filter
    after: int
    """Only lines after this one."""


def follow_lines(
    requests: Sequence[FollowRequest],
    *,
    reader: LogReader,
    notifier: Notifier[str],
    clock: Clock,
    pace: PollIntervals,
) -> AsyncIterator[api.FollowLinesResponse]:
    """Yields matching lines after each position, in order; ends when all lines of complete logs are sent.

    Args:
        requests: Which logs.
        reader: Reads the logs.
        notifier: Tells which trials and experiments have new lines, and when the service stops.
        clock: Measures heartbeats.
        pace: How often it looks without a notification.

    Yields:
        News of one log; a message without a key from time to time, to show that the stream lives.

    Raises:
        UnavailableError: The service stops.
    """
    cursors = {request.key: request.after for request in requests}

    async def look(turn: Turn[FollowRequest]) -> AsyncGenerator[api.FollowLinesResponse, None]:
        for request in turn.due:
            read = await reader.read(request.wanted, position=cursors[request.key])
            cursors[request.key] = read.response.cursor
            if read.more:
                turn.unread.append(request)
            elif read.response.complete:
                turn.finished.append(request)
            if read.has_news:
                news = api.FollowLinesResponse(key=request.key)
                news.MergeFrom(read.response)
                yield news

    return follow(
        requests,
        look,
        topics=lambda request: (request.wanted.topic,),
        notifier=notifier,
        clock=clock,
        pace=pace.for_many(len(requests)),
        quiet=api.FollowLinesResponse(),
        on_stop="the logs service is stopping; follow on after the last line that came once it is back",
    )
