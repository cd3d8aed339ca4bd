"""The new points of a series since the last read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from resolute_metrics.queries.curves.downsampling import downsample
from resolute_metrics.queries.curves.ranges import EVERYTHING, Range
from resolute_metrics.queries.curves.series import Series, read_streams
from resolute_metrics.queries.superseded import superseded_from
from resolute_metrics.store.aggregates import Row
from resolute_metrics.store.streams import Stream


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """One series to watch."""

    key: str
    """How the client tells it from others."""
    trial_id: str
    group: str
    name: str
    most: int
    """About how many points it has at most."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a series since the last poll."""

    request: SeriesRequest
    points: Series
    reset: bool
    """Whether the points are the whole series rather than its new end."""
    total: int
    """Points before downsampling."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The position of a watch in one series."""

    counts: Mapping[int, int] = field(default_factory=dict)
    """Points by stream."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """Where the points of runs end."""
    last_step: int | None = None
    total: int = 0
    sent: int = 0
    """Points that were sent since the series was last sent as a whole."""


def look(
    connection: Connection, request: SeriesRequest, known: Sequence[Stream], seen: Seen | None
) -> tuple[Seen, Change] | None:
    """Reads the changes of a series; None if it has no new points.

    Args:
        connection: Reads.
        request: Which series.
        known: The streams of its trial and group.
        seen: What was seen before; None for the first look.
    """
    ends = superseded_from((stream.run, stream.first_step) for stream in known)
    holding = [stream for stream in known if request.name in stream.names]
    counts = {stream.key: count_of(stream, request.name) for stream in holding}
    if seen is not None:
        if counts == seen.counts and ends == seen.ends:
            return None
        end = _appended(connection, holding, request.name, seen=seen, counts=counts, ends=ends)
        if end is not None and seen.sent + len(end) <= 2 * request.most:
            total = seen.total + len(end)
            last_step = int(end.steps[-1]) if len(end) else seen.last_step
            following = Seen(counts, ends, last_step, total, seen.sent + len(end))
            return following, Change(request, end, reset=False, total=total)
    whole = read_streams(connection, holding, request.name, ends=ends)
    points = whole.at(downsample(whole.values, request.most)) if len(whole) > request.most else whole
    last_step = int(whole.steps[-1]) if len(whole) else None
    following = Seen(counts, ends, last_step, len(whole), len(points))
    return following, Change(request, points, reset=True, total=len(whole))


def _appended(
    connection: Connection,
    holding: Sequence[Stream],
    name: str,
    *,
    seen: Seen,
    counts: Mapping[int, int],
    ends: Mapping[int, int],
) -> Series | None:
    """Returns the new points if all of them follow the known ones; otherwise None."""
    grown = [stream for stream in holding if counts[stream.key] != seen.counts.get(stream.key, 0)]
    if ends != seen.ends or any(stream.run in ends for stream in grown):
        return None
    within = EVERYTHING if seen.last_step is None else Range(min_steps=seen.last_step + 1)
    end = read_streams(connection, grown, name, ends={}, within=within)
    came = sum(counts[stream.key] - seen.counts.get(stream.key, 0) for stream in grown)
    return end if len(end) == came else None


def count_of(stream: Stream, name: str) -> int:
    """Returns how many numbers of a metric a stream has, including those that are not finite."""
    column = stream.aggregates[:, stream.names.index(name)]
    return int(column[Row.COUNT] + column[Row.NONFINITE])
