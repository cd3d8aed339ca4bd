"""Sends lines as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_logs.queries.filters import Filter
from resolute_logs.queries.pages import Page, StoredLine, read_page
from resolute_logs.store.closures import is_complete
from resolute_serving.change_notifier import ChangeNotifier, PollIntervals
from resolute_serving.database.engine import Database

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


class Follower:
    """Follows logs, for as long as the service runs.

    Args:
        database: Where lines come from.
        change_notifier: Tells when to look.
        clock: Measures heartbeats.
        pace: How often it looks without being told.
    """

    def __init__(
        self, database: Database, change_notifier: ChangeNotifier, *, clock: Clock, pace: PollIntervals
    ) -> None:
        self._database = database
        self._change_notifier = change_notifier
        self._clock = clock
        self._pace = pace
        self._stopping = False

    def stop(self) -> None:
        """Ends every stream with an error that tells the client to follow on later."""
        self._stopping = True
        self._change_notifier.notify_all()

    async def follow(self, requests: Sequence[FollowRequest]) -> AsyncIterator[NewLines | None]:
        """Gives matching lines behind each position, in order; ends when every log is complete and was given.

        Args:
            requests: Which logs.

        Yields:
            News of one log; None from time to time, to show that the stream lives.

        Raises:
            UnavailableError: The service stops.
        """
        cursors = {request.key: request.after for request in requests}
        left = list(requests)
        recheck = self._pace.recheck_of(len(requests))
        sent_at = self._clock.monotonic()
        with self._change_notifier.subscribe(request.wanted.trial_id for request in requests) as changes:
            due, checked_at = list(left), self._clock.monotonic()
            while left:
                unread: list[FollowRequest] = []
                for request in due:
                    news, more = await self._look(request, cursors[request.key])
                    if news.lines or news.complete:
                        sent_at = self._clock.monotonic()
                        yield news
                    cursors[request.key] = news.cursor
                    if more:
                        unread.append(request)
                    elif news.complete:
                        left.remove(request)
                if self._clock.monotonic() - sent_at >= self._pace.heartbeat:
                    sent_at = self._clock.monotonic()
                    yield None
                changed = await changes.wait(0 if unread or not left else recheck)
                if unread:
                    due = [one for one in left if one in unread or one.wanted.trial_id in changed]
                elif changed and self._clock.monotonic() - checked_at < recheck:
                    due = [one for one in left if one.wanted.trial_id in changed]
                else:
                    due, checked_at = list(left), self._clock.monotonic()

    async def _look(self, request: FollowRequest, cursor: int) -> tuple[NewLines, bool]:
        """Reads what is new of a log, and whether more of it can be read at once."""
        if self._stopping:
            raise UnavailableError(
                f"the logs service is stopping; follow on after line {cursor} once it is back"
            )
        poll = partial(_poll, wanted=request.wanted, position=cursor)
        complete, page = await self._database.read(poll)
        return NewLines(request, page.lines, page.position, complete and not page.more), page.more


def _poll(connection: Connection, *, wanted: Filter, position: int) -> tuple[bool, Page]:
    # In this order: lines that were there when the log was marked as complete are then among those read.
    complete = is_complete(connection, wanted.trial_id)
    return complete, read_page(connection, wanted, position=position, most=_LINES_AT_ONCE)
