"""Reads whole reports of a trial, page by page, by group and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.queries.curves.ranges import EVERYTHING, Range
from resolute_metrics.queries.superseded import effective_mask, superseded_from
from resolute_metrics.store import blocks, codec, streams
from resolute_metrics.store.rows import Floats, Integers, Mask, Piece
from resolute_metrics.store.schema import INTAKE
from resolute_metrics.store.schema import blocks as table
from resolute_metrics.store.streams import Stream
from resolute_serving.pagination import is_text

_NO_FLOATS: Floats = np.array([], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a report among the others of its trial."""

    group: str
    steps: int
    run: int
    source_key: int
    sequence: int


def is_report_position(value: Any) -> bool:
    """Returns whether a value has the fields of a position."""
    if not isinstance(value, list) or len(value) != 5 or not is_text(value[0]):
        return False
    # Steps may be negative.
    return all(type(number) is int and -(2**63) <= number < 2**63 for number in value[1:])


@dataclass(frozen=True, slots=True)
class StoredReport:
    """One report."""

    position: Position
    source: str
    time: float
    metrics: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFilter:
    """A filter of a trial's reports, and their order within a group."""

    groups: frozenset[str] = frozenset()
    """Empty for all."""
    runs: frozenset[int] = frozenset()
    """Empty for all."""
    within: Range = EVERYTHING
    """Steps and times."""
    superseded: bool = False
    """Whether points beyond the first step of a later run are left in."""
    descending: bool = False
    """Most steps first."""


def read_reports(
    connection: Connection,
    trial_key: int,
    wanted: ReportFilter,
    *,
    after: Position | None = None,
    most: int,
) -> list[StoredReport]:
    """Reads a page of reports: by group, and within a group in the order of their positions.

    Args:
        connection: Reads.
        trial_key: The trial.
        wanted: Which reports.
        after: The last report of the page before; None for the first page.
        most: Most reports.
    """
    known = streams.load(connection, [trial_key], groups=wanted.groups)
    sources = _source_names(connection, trial_key)
    reports: list[StoredReport] = []
    for name in sorted({stream.group for stream in known}):
        if len(reports) >= most or (after is not None and name < after.group):
            continue
        reader = _GroupReader(connection, [one for one in known if one.group == name], wanted)
        start = after if after is not None and after.group == name else None
        reports += reader.read(start, most - len(reports), sources)
    return reports


def _source_names(connection: Connection, trial_key: int) -> dict[int, str]:
    table = INTAKE.sources
    rows = connection.execute(
        sa.select(table.c.source_key, table.c.source).where(table.c.trial_key == trial_key)
    )
    return {row.source_key: row.source for row in rows}


class _Header(NamedTuple):
    block_key: int
    stream_key: int
    row_count: int
    first_step: int
    last_step: int


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """An index of the rows of loaded blocks, with one entry for each row."""

    steps: Integers
    runs: Integers
    sources: Integers
    sequences: Integers
    places: Integers
    """Number of the loaded block."""
    rows: Integers
    """Row within it."""

    def where(self, mask: Mask) -> _Index:
        return self.at(np.flatnonzero(mask))

    def at(self, order: Integers) -> _Index:
        return _Index(*(getattr(self, name)[order] for name in self.__slots__))

    def behind(self, position: Position, *, descending: bool) -> Mask:
        sign = -1 if descending else 1
        result: Mask = self.sequences * sign > position.sequence * sign
        for column, value in (
            (self.sources, position.source_key),
            (self.runs, position.run),
            (self.steps, position.steps),
        ):
            result = (column * sign > value * sign) | ((column == value) & result)
        return result

    def sorted(self, *, descending: bool) -> _Index:
        order = np.lexsort((self.sequences, self.sources, self.runs, self.steps))
        return self.at(order[::-1] if descending else order)


class _GroupReader:
    """Reads the reports of one group, loading no more blocks than a page needs."""

    def __init__(self, connection: Connection, known: Sequence[Stream], wanted: ReportFilter) -> None:
        self._connection = connection
        self._wanted = wanted
        self._ends = (
            {} if wanted.superseded else superseded_from((stream.run, stream.first_step) for stream in known)
        )
        self._streams = {
            stream.key: stream for stream in known if not wanted.runs or stream.run in wanted.runs
        }
        self._pieces: dict[int, Piece] = {}

    def read(self, after: Position | None, most: int, sources: dict[int, str]) -> list[StoredReport]:
        headers = self._headers(after)
        parts: list[_Index] = []
        complete = 0
        for place, header in enumerate(headers):
            parts.append(self._index(place, header, after))
            following = headers[place + 1] if place + 1 < len(headers) else None
            complete = sum(self._complete(part, following) for part in parts)
            if complete >= most:
                break
        if not parts:
            return []
        index = _Index(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in _Index.__slots__)
        )
        index = index.sorted(descending=self._wanted.descending).at(np.arange(min(complete, most)))
        return [self._report(index, entry, headers, sources) for entry in range(len(index.steps))]

    def _complete(self, part: _Index, following: _Header | None) -> int:
        """Returns how many rows precede all rows of later blocks."""
        if following is None:
            return len(part.steps)
        if self._wanted.descending:
            return int((part.steps > following.last_step).sum())
        return int((part.steps < following.first_step).sum())

    def _headers(self, after: Position | None) -> list[_Header]:
        query = sa.select(*(table.c[name] for name in _Header._fields)).where(
            table.c.stream_key.in_(list(self._streams)), *self._wanted.within.block_conditions()
        )
        if self._wanted.descending:
            query = query.order_by(table.c.last_step.desc(), table.c.block_key)
            if after is not None:
                query = query.where(table.c.first_step <= after.steps)
        else:
            query = query.order_by(table.c.first_step, table.c.block_key)
            if after is not None:
                query = query.where(table.c.last_step >= after.steps)
        return [_Header(*row) for row in self._connection.execute(query)]

    def _index(self, place: int, header: _Header, after: Position | None) -> _Index:
        stream, within = self._streams[header.stream_key], self._wanted.within
        timed = (table.c.times,) if within.timed else ()
        row = self._connection.execute(
            sa.select(table.c.steps, table.c.sequences, *timed).where(table.c.block_key == header.block_key)
        ).one()
        count = header.row_count
        steps = codec.decode_integers(row.steps, count)
        times = codec.decode_floats(row.times) if within.timed else _NO_FLOATS
        index = _Index(
            steps=steps,
            runs=np.full(count, stream.run, dtype=np.int64),
            sources=np.full(count, stream.source_key, dtype=np.int64),
            sequences=codec.decode_integers(row.sequences, count),
            places=np.full(count, place, dtype=np.int64),
            rows=np.arange(count, dtype=np.int64),
        ).where(effective_mask(steps, self._ends.get(stream.run)) & within.mask(steps, times))
        if after is None:
            return index
        return index.where(index.behind(after, descending=self._wanted.descending))

    def _report(
        self, index: _Index, entry: int, headers: Sequence[_Header], sources: dict[int, str]
    ) -> StoredReport:
        place, row = int(index.places[entry]), int(index.rows[entry])
        piece = self._pieces.get(place) or self._load(place, headers[place])
        source_key = int(index.sources[entry])
        return StoredReport(
            position=Position(
                group=piece.group,
                steps=int(index.steps[entry]),
                run=int(index.runs[entry]),
                source_key=source_key,
                sequence=int(index.sequences[entry]),
            ),
            source=sources[source_key],
            time=float(piece.rows.times[row]),
            metrics=piece.report(row),
        )

    def _load(self, place: int, header: _Header) -> Piece:
        stream = self._streams[header.stream_key]
        stored = self._connection.execute(sa.select(table).where(table.c.block_key == header.block_key)).one()
        piece = Piece(stream.group, stream.names, blocks.read(self._connection, stored))
        self._pieces[place] = piece
        return piece
