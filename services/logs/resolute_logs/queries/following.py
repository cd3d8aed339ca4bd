"""Sends lines as they arrive."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_logs.queries.filters import Filter
from resolute_logs.queries.pages import Page, StoredLine, read_page
from resolute_logs.store.closures import is_complete
from resolute_serving.database.engine import Database
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.notifier import Notifier

_LINES_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """One log to follow."""

    key: str
    """How the client tells it from others."""
    wanted: Filter
    after: int
    """Only lines after this one."""


@dataclass(frozen=True, slots=True)
class NewLines:
    """What came of one log."""

    request: FollowRequest
    lines: Sequence[StoredLine]
    cursor: int
    """Every matching line up to this one was sent."""
    complete: bool
    """Whether nothing more comes."""


def follow_lines(
    requests: Sequence[FollowRequest],
    *,
    database: Database,
    notifier: Notifier[str],
    clock: Clock,
    pace: PollIntervals,
) -> AsyncIterator[NewLines | None]:
    """Gives matching lines behind each position, in order; ends when every log is complete and was given.

    Args:
        requests: Which logs.
        database: Where lines come from.
        notifier: Tells which trials have new lines, and when the service stops.
        clock: Measures heartbeats.
        pace: How often it looks without being told.

    Yields:
        News of one log; None from time to time, to show that the stream lives.

    Raises:
        UnavailableError: The service stops.
    """
    cursors = {request.key: request.after for request in requests}

    async def look(turn: Turn[FollowRequest]) -> AsyncGenerator[NewLines, None]:
        for request in turn.due:
            poll = partial(_poll, wanted=request.wanted, position=cursors[request.key])
            complete, page = await database.read(poll)
            cursors[request.key] = page.position
            if page.more:
                turn.unread.append(request)
            elif complete:
                turn.finished.append(request)
            if page.lines or (complete and not page.more):
                yield NewLines(request, page.lines, page.position, complete and not page.more)

    return follow(
        requests,
        look,
        topics=lambda request: (request.wanted.trial_id,),
        notifier=notifier,
        clock=clock,
        pace=pace.for_many(len(requests)),
        quiet=None,
        on_stop="the logs service is stopping; follow on after the last line that came once it is back",
    )


def _poll(connection: Connection, *, wanted: Filter, position: int) -> tuple[bool, Page]:
    # In this order: lines that were there when the log was marked as complete are then among those read.
    complete = is_complete(connection, wanted.trial_id)
    return complete, read_page(connection, wanted, position=position, most=_LINES_AT_ONCE)
