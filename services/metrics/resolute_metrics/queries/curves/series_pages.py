"""Pages of many series in one range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute_metrics.queries.curves.downsampling import MAX_POINTS, downsample
from resolute_metrics.queries.curves.growth import count_of
from resolute_metrics.queries.curves.ranges import Range
from resolute_metrics.queries.curves.series import Series, read_streams
from resolute_metrics.queries.superseded import superseded_from
from resolute_metrics.store import streams
from resolute_metrics.store.schema import INTAKE
from resolute_metrics.store.streams import Stream

MOST_READ = 4_000_000
"""Points among which a page looks; a page that would look at more ends early."""


@dataclass(frozen=True, slots=True)
class SeriesName:
    """The name of one series of one trial."""

    trial_id: str
    group: str
    name: str


@dataclass(frozen=True, slots=True)
class SeriesRange:
    """The points of a series in a range."""

    points: Series
    total: int
    """How many there were before downsampling."""


def read_page(
    connection: Connection, wanted: Sequence[SeriesName], *, within: Range, most: int
) -> list[SeriesRange]:
    """Reads as many series as fit into one response, at least one.

    Args:
        connection: Reads.
        wanted: Which series.
        within: Which points.
        most: To how many points each is downsampled.
    """
    series: list[SeriesRange] = []
    looked_at, taken = 0, 0
    for name, holding, known in _streams_of(connection, wanted):
        looked_at += sum(count_of(stream, name) for stream in holding)
        if series and looked_at > MOST_READ:
            break
        ends = superseded_from((stream.run, stream.first_step) for stream in known)
        whole = read_streams(connection, holding, name, ends=ends, within=within)
        points = whole.at(downsample(whole.values, most)) if len(whole) > most else whole
        taken += len(points)
        if series and taken > MAX_POINTS:
            break
        series.append(SeriesRange(points, len(whole)))
    return series


def _streams_of(
    connection: Connection, wanted: Sequence[SeriesName]
) -> Iterator[tuple[str, list[Stream], list[Stream]]]:
    """Returns for each series its name, the streams that have it, and all streams of its trial and group."""
    keys = INTAKE.find_trials(connection, sorted({series.trial_id for series in wanted}))
    by_group: dict[tuple[int, str], list[Stream]] = {}
    for stream in streams.load(connection, keys.values(), groups={series.group for series in wanted}):
        by_group.setdefault((stream.trial_key, stream.group), []).append(stream)
    for series in wanted:
        known = by_group.get((keys.get(series.trial_id, 0), series.group), [])
        yield series.name, [stream for stream in known if series.name in stream.names], known
