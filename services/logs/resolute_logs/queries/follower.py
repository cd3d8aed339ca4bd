"""Sends lines as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_logs.queries.filters import Filter
from resolute_logs.queries.pages import Page, StoredLine, read_page
from resolute_logs.store.closures import is_complete
from resolute_serving.change_notifier import ChangeNotifier, PollIntervals
from resolute_serving.database.engine import Database

_LINES_AT_ONCE = 2000


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
        """Ends every stream with an error that says where to go on."""
        self._stopping = True
        self._change_notifier.notify_all()

    async def follow(self, wanted: Filter, *, after: int) -> AsyncIterator[list[StoredLine]]:
        """Gives matching lines behind a position, in order; ends when the trial is closed and all were given.

        Args:
            wanted: Which lines.
            after: Only lines after this one.

        Yields:
            Some lines; none from time to time, to show that the stream lives.

        Raises:
            UnavailableError: The service stops.
        """
        position = after
        spoke = self._clock.monotonic()
        while True:
            if self._stopping:
                raise UnavailableError(
                    f"the logs service is stopping; follow on after line {position} once it is back"
                )
            news = self._change_notifier.next_for(wanted.trial_id)
            complete, page = await self._database.read(partial(_poll, wanted=wanted, position=position))
            position = page.position
            if page.lines or self._clock.monotonic() - spoke >= self._pace.heartbeat:
                yield page.lines
                spoke = self._clock.monotonic()
            if page.more:
                continue
            if complete:
                return
            await self._change_notifier.wait(news, self._pace.recheck)


def _poll(connection: Connection, *, wanted: Filter, position: int) -> tuple[bool, Page]:
    # In this order: lines that were there when the trial was closed are then among those read.
    complete = is_complete(connection, wanted.trial_id)
    return complete, read_page(connection, wanted, position=position, most=_LINES_AT_ONCE)
