"""Series that are watched while they grow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_metrics.queries.downsampling import downsample
from resolute_metrics.queries.series import Series, read_streams
from resolute_metrics.queries.superseded import superseded_from
from resolute_metrics.store import streams
from resolute_metrics.store.aggregates import Row
from resolute_metrics.store.schema import INTAKE
from resolute_metrics.store.streams import Stream
from resolute_serving.change_notifier import ChangeNotifier, PollIntervals
from resolute_serving.database.engine import Database

MIN_INTERVAL_SECONDS = 0.2
"""Seconds between two looks: a trial that reports thousands of times a second is not plotted as often."""


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """One series."""

    trial_id: str
    group: str
    name: str
    most: int
    """About how many points it has at most."""


@dataclass(frozen=True, slots=True)
class Change:
    """What came of a series since it was last looked at."""

    points: Series
    anew: bool
    """Whether the points are the whole series rather than its new end."""
    total: int
    """Points before downsampling."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """How far a watch has come."""

    counts: Mapping[int, int] = field(default_factory=dict)
    """Points by stream."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """Where the points of runs end."""
    last_step: int | None = None
    total: int = 0
    sent: int = 0
    """Points that were sent since the series was last sent as a whole."""


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

    async def watch(self, wanted: SeriesRequest) -> AsyncIterator[Change | None]:
        """Gives the whole series, and then what comes.

        Args:
            wanted: Which series.

        Yields:
            Changes; None from time to time, to show that the stream lives.

        Raises:
            UnavailableError: The service stops.
        """
        seen: _Seen | None = None
        spoke = self._clock.monotonic()
        while True:
            if self._stopping:
                raise UnavailableError("the metrics service is stopping; watch again once it is back")
            news = self._change_notifier.next_for(wanted.trial_id)
            seen, change = await self._database.read(partial(_poll, wanted=wanted, seen=seen))
            if change is not None or self._clock.monotonic() - spoke >= self._pace.heartbeat:
                spoke = self._clock.monotonic()
                yield change
                await asyncio.sleep(self._pause)
            await self._change_notifier.wait(news, self._pace.recheck)


def _poll(
    connection: Connection, *, wanted: SeriesRequest, seen: _Seen | None
) -> tuple[_Seen, Change | None]:
    trial = INTAKE.find_trial(connection, wanted.trial_id)
    known = [] if trial is None else streams.load(connection, [trial], group=wanted.group)
    ends = superseded_from((stream.run, stream.first_step) for stream in known)
    holding = [stream for stream in known if wanted.name in stream.names]
    counts = {stream.key: _count(stream, wanted.name) for stream in holding}
    if seen is not None:
        if counts == seen.counts and ends == seen.ends:
            return seen, None
        end = _appended(connection, holding, wanted.name, seen=seen, counts=counts, ends=ends)
        if end is not None and seen.sent + len(end) <= 2 * wanted.most:
            total = seen.total + len(end)
            last_step = int(end.steps[-1]) if len(end) else seen.last_step
            following = _Seen(counts, ends, last_step, total, seen.sent + len(end))
            return following, Change(end, anew=False, total=total)
    whole = read_streams(connection, holding, wanted.name, ends=ends)
    points = whole.at(downsample(whole.values, wanted.most)) if len(whole) > wanted.most else whole
    last_step = int(whole.steps[-1]) if len(whole) else None
    following = _Seen(counts, ends, last_step, len(whole), len(points))
    return following, Change(points, anew=True, total=len(whole))


def _appended(
    connection: Connection,
    holding: list[Stream],
    name: str,
    *,
    seen: _Seen,
    counts: Mapping[int, int],
    ends: Mapping[int, int],
) -> Series | None:
    """The points that came since, if all of them lie behind those that were seen; None if not."""
    grown = [stream for stream in holding if counts[stream.key] != seen.counts.get(stream.key, 0)]
    if ends != seen.ends or any(stream.run in ends for stream in grown):
        return None
    end = read_streams(connection, grown, name, ends={}, after=seen.last_step)
    came = sum(counts[stream.key] - seen.counts.get(stream.key, 0) for stream in grown)
    return end if len(end) == came else None


def _count(stream: Stream, name: str) -> int:
    column = stream.aggregates[:, stream.names.index(name)]
    return int(column[Row.COUNT] + column[Row.NONFINITE])
