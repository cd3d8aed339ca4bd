"""Watches growing series."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_metrics.queries.curves.growth import Change, Seen, SeriesRequest, look
from resolute_metrics.store import streams
from resolute_metrics.store.schema import INTAKE
from resolute_metrics.store.streams import Stream
from resolute_serving.database.engine import Database
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.notifier import Notifier

_SERIES_AT_ONCE = 20


def watch_series(
    requests: Sequence[SeriesRequest],
    *,
    database: Database,
    notifier: Notifier[str],
    clock: Clock,
    pace: PollIntervals,
) -> AsyncIterator[Change | None]:
    """Yields each whole series, then its changes.

    Args:
        requests: Which series.
        database: Where points come from.
        notifier: Tells which trials have new points, and when the service stops.
        clock: Measures heartbeats.
        pace: How often it looks.

    Yields:
        Changes of one series; None from time to time, to show that the stream lives.

    Raises:
        UnavailableError: The service stops.
    """
    seen: dict[str, Seen] = {}

    async def look(turn: Turn[SeriesRequest]) -> AsyncGenerator[Change, None]:
        for start in range(0, len(turn.due), _SERIES_AT_ONCE):
            some = turn.due[start : start + _SERIES_AT_ONCE]
            changes = await database.read(partial(_poll, requests=some, seen=seen))
            seen.update({change.request.key: now for now, change in changes})
            for _, change in changes:
                yield change

    return follow(
        requests,
        look,
        topics=lambda request: (request.trial_id,),
        notifier=notifier,
        clock=clock,
        pace=pace.for_many(len(requests)),
        quiet=None,
        on_stop="the metrics service is stopping; watch again once it is back",
    )


def _poll(
    connection: Connection, *, requests: Sequence[SeriesRequest], seen: Mapping[str, Seen]
) -> list[tuple[Seen, Change]]:
    """Reads several series; returns those that have changed."""
    keys = INTAKE.find_trials(connection, [request.trial_id for request in requests])
    known = streams.load(connection, keys.values(), groups={request.group for request in requests})
    by_group: dict[tuple[int, str], list[Stream]] = {}
    for stream in known:
        by_group.setdefault((stream.trial_key, stream.group), []).append(stream)
    changes = []
    for request in requests:
        own = by_group.get((keys.get(request.trial_id, 0), request.group), [])
        news = look(connection, request, own, seen.get(request.key))
        if news is not None:
            changes.append(news)
    return changes
