"""Reads the next lines of a log once for all its followers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.contracts.clock import Clock
from resolute_logs.queries.filters import Filter
from resolute_logs.queries.pages import read_page, to_line
from resolute_logs.store.closures import is_complete
from resolute_serving.database.engine import Database

_LINES_AT_ONCE = 1000
_BYTES_AT_ONCE = 64 << 10
"""Bytes of one read. A short message takes little time to read and to convert, and little memory while its
client does not read it: an unread message takes four times its size, as an object and as bytes."""
_KEPT = 32
"""How many reads are kept for other followers."""
_KEPT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Read:
    """The next lines of one log. Followers share it, so it must not be changed."""

    response: api.FollowLinesResponse
    """The lines as a follower gets them, without its key."""
    more: bool
    """Whether more can be read at once."""
    number: int
    """How many reads had begun when it began."""
    time: float
    """When it began, on the clock's monotonic scale."""

    @property
    def has_news(self) -> bool:
        """Whether it contains anything for a follower."""
        return bool(self.response.lines) or self.response.complete


class LogReader:
    """Reads logs for followers, one read at a time, because reading holds the interpreter.

    Args:
        database: The service's database.
        clock: Clock for the age of a read.
    """

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._turn = asyncio.Lock()
        self._begun = 0
        self._kept: OrderedDict[tuple[Filter, int], Read] = OrderedDict()

    async def read(self, wanted: Filter, *, position: int) -> Read:
        """Reads the matching lines after a position, or reuses a read of another follower.

        Args:
            wanted: Which lines.
            position: Every line up to this one is known.
        """
        asked = self._begun
        async with self._turn:
            kept = self._kept.get((wanted, position))
            if kept is not None and self._is_current(kept, asked):
                return kept
            self._begun += 1
            self._kept.pop((wanted, position), None)
            work = partial(
                _read, wanted=wanted, position=position, number=self._begun, time=self._clock.monotonic()
            )
            self._kept[wanted, position] = read = await self._database.read(work)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return read

    def _is_current(self, kept: Read, asked: int) -> bool:
        """Returns whether a read is current: it began after the request, or further lines follow it."""
        return kept.number > asked or (kept.more and self._clock.monotonic() - kept.time < _KEPT_SECONDS)


def _read(connection: Connection, *, wanted: Filter, position: int, number: int, time: float) -> Read:
    # In this order: lines that were there when the log was marked as complete are then among those read.
    # More trials of an experiment may come.
    complete = not wanted.experiment_id and is_complete(connection, wanted.trial_id)
    page = read_page(connection, wanted, position=position, most=_LINES_AT_ONCE, most_bytes=_BYTES_AT_ONCE)
    response = api.FollowLinesResponse(
        lines=[to_line(line, page.trials) for line in page.lines],
        cursor=page.position,
        complete=complete and not page.more,
    )
    return Read(response, page.more, number, time)
