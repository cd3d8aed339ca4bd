"""Series that are watched while they grow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_metrics.queries.growth import Change, Seen, SeriesRequest, look
from resolute_metrics.store import streams
from resolute_metrics.store.schema import INTAKE
from resolute_metrics.store.streams import Stream
from resolute_serving.change_notifier import ChangeNotifier, PollIntervals
from resolute_serving.database.engine import Database

MIN_INTERVAL_SECONDS = 0.2
"""Seconds between two looks: a trial that reports thousands of times a second is not plotted as often."""
_SERIES_AT_ONCE = 20


class Watcher:
    """Serves watches, for as long as the service runs.

    Args:
        database: Where points come from.
        change_notifier: Tells when to look.
        clock: Measures heartbeats.
        pace: How often it looks without being told.
        pause: Seconds between two looks at least.
    """

    def __init__(
        self,
        database: Database,
        change_notifier: ChangeNotifier,
        *,
        clock: Clock,
        pace: PollIntervals,
        pause: float = MIN_INTERVAL_SECONDS,
    ) -> None:
        self._database = database
        self._change_notifier = change_notifier
        self._clock = clock
        self._pace = pace
        self._pause = pause
        self._stopping = False

    def stop(self) -> None:
        """Ends every watch with an error that says so."""
        self._stopping = True
        self._change_notifier.notify_all()

    async def watch(self, requests: Sequence[SeriesRequest]) -> AsyncIterator[Change | None]:
        """Returns each whole series, and then what comes.

        Args:
            requests: Which series.

        Yields:
            Changes of one series; None from time to time, to show that the stream lives.

        Raises:
            UnavailableError: The service stops.
        """
        seen: dict[str, Seen] = {}
        recheck = self._pace.recheck_of(len(requests))
        sent_at = self._clock.monotonic()
        with self._change_notifier.subscribe(request.trial_id for request in requests) as changes:
            due, checked_at = list(requests), self._clock.monotonic()
            while True:
                found = False
                for start in range(0, len(due), _SERIES_AT_ONCE):
                    for change in await self._look(due[start : start + _SERIES_AT_ONCE], seen):
                        found, sent_at = True, self._clock.monotonic()
                        yield change
                if self._clock.monotonic() - sent_at >= self._pace.heartbeat:
                    sent_at = self._clock.monotonic()
                    yield None
                if found:
                    await asyncio.sleep(self._pause)
                changed = await changes.wait(recheck)
                if changed and self._clock.monotonic() - checked_at < recheck:
                    due = [request for request in requests if request.trial_id in changed]
                else:
                    due, checked_at = list(requests), self._clock.monotonic()

    async def _look(self, requests: Sequence[SeriesRequest], seen: dict[str, Seen]) -> list[Change]:
        if self._stopping:
            raise UnavailableError("the metrics service is stopping; watch again once it is back")
        found = await self._database.read(partial(_poll, requests=requests, seen=seen))
        seen.update({change.request.key: now for now, change in found})
        return [change for _, change in found]


def _poll(
    connection: Connection, *, requests: Sequence[SeriesRequest], seen: Mapping[str, Seen]
) -> list[tuple[Seen, Change]]:
    """Looks at several series at once; returns those that have changed."""
    keys = INTAKE.find_trials(connection, [request.trial_id for request in requests])
    known = streams.load(connection, keys.values(), groups={request.group for request in requests})
    by_group: dict[tuple[int, str], list[Stream]] = {}
    for stream in known:
        by_group.setdefault((stream.trial_key, stream.group), []).append(stream)
    found = []
    for request in requests:
        own = by_group.get((keys.get(request.trial_id, 0), request.group), [])
        news = look(connection, request, own, seen.get(request.key))
        if news is not None:
            found.append(news)
    return found
