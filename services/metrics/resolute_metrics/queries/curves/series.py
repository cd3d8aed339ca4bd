"""The series of one metric of one trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.queries.curves.ranges import EVERYTHING, Range
from resolute_metrics.queries.superseded import effective_mask, superseded_from
from resolute_metrics.store import codec, streams
from resolute_metrics.store.rows import Floats, Integers
from resolute_metrics.store.schema import blocks, columns

_NO_INTEGERS: Integers = np.array([], dtype=np.int64)
_NO_FLOATS: Floats = np.array([], dtype=np.float64)
_LEAST, _MOST = -(2**63), 2**63 - 1
# Written once: a chart of hundreds of series would spend more time on making queries than on their answers.
_BLOCKS = (
    sa.select(blocks.c.row_count, blocks.c.steps, blocks.c.times, blocks.c.matrix, columns.c.data)
    .select_from(
        blocks.outerjoin(
            columns,
            sa.and_(
                columns.c.block_key == blocks.c.block_key, columns.c.position == sa.bindparam("position")
            ),
        )
    )
    .where(
        blocks.c.stream_key == sa.bindparam("stream"),
        blocks.c.last_step >= sa.bindparam("least"),
        blocks.c.first_step <= sa.bindparam("most"),
    )
    .order_by(blocks.c.block_key)
)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The points of a series by ascending steps, at equal steps by run. A run has one point at a step."""

    steps: Integers
    values: Floats
    times: Floats
    runs: Integers

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, places: Integers) -> Series:
        """Returns the points at some indices."""
        return Series(self.steps[places], self.values[places], self.times[places], self.runs[places])


def read_series(
    connection: Connection,
    trial_key: int,
    *,
    group: str,
    name: str,
    superseded: bool = False,
    within: Range = EVERYTHING,
) -> Series:
    """Reads the points of a metric.

    Args:
        connection: Reads.
        trial_key: The trial.
        group: The group.
        name: The metric.
        superseded: Whether points beyond the first step of a later run are left in.
        within: Which points.
    """
    known = streams.load(connection, [trial_key], groups=[group])
    ends = {} if superseded else superseded_from((stream.run, stream.first_step) for stream in known)
    return read_streams(
        connection, [one for one in known if name in one.names], name, ends=ends, within=within
    )


def read_streams(
    connection: Connection,
    holding: Iterable[streams.Stream],
    name: str,
    *,
    ends: Mapping[int, int],
    within: Range = EVERYTHING,
) -> Series:
    """Reads the points of a metric in some streams.

    Args:
        connection: Reads.
        holding: Streams that have the metric.
        name: The metric.
        ends: By run, the step from which on its points do not count.
        within: Which points.
    """
    parts = [
        part
        for stream in holding
        for part in _points(connection, stream, name, end=ends.get(stream.run), within=within)
    ]
    if not parts:
        return Series(_NO_INTEGERS, _NO_FLOATS, _NO_FLOATS, _NO_INTEGERS)
    series = Series(
        steps=np.concatenate([part.steps for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        times=np.concatenate([part.times for part in parts]),
        runs=np.concatenate([part.runs for part in parts]),
    )
    if (series.steps[1:] > series.steps[:-1]).all():
        return series
    series = series.at(np.lexsort((series.times, series.runs, series.steps)))
    # What a run reported again at a step takes the place of what it reported there before.
    replaced = (series.steps[1:] == series.steps[:-1]) & (series.runs[1:] == series.runs[:-1])
    return series.at(np.flatnonzero(~np.append(replaced, False))) if replaced.any() else series


def _points(
    connection: Connection, stream: streams.Stream, name: str, *, end: int | None, within: Range
) -> list[Series]:
    position = stream.names.index(name)
    wanted = {
        "stream": stream.key,
        "position": position,
        "least": _LEAST if within.min_steps is None else within.min_steps,
        "most": min(
            _MOST if end is None else end - 1, _MOST if within.max_steps is None else within.max_steps
        ),
    }
    parts = []
    for row in connection.execute(_BLOCKS, wanted):
        steps = codec.decode_integers(row.steps, row.row_count)
        part = Series(
            steps=steps,
            values=(
                codec.decode_floats(row.data)
                if row.matrix is None
                else codec.decode_column(row.matrix, position, row.row_count)
            ),
            times=codec.decode_floats(row.times),
            runs=np.full(row.row_count, stream.run, dtype=np.int64),
        )
        mask = effective_mask(steps, end)
        if within is not EVERYTHING:
            mask &= within.mask(steps, part.times)
        parts.append(part if mask.all() else part.at(np.flatnonzero(mask)))
    return parts
