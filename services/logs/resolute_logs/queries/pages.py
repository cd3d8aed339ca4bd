"""Reads lines page by page. A page scans a bounded range of a log, even if few of its lines match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.api.logs.v1 import line_pb2
from resolute_logs.queries.filters import Filter
from resolute_logs.store.schema import INTAKE, LINE_BYTES, lines

WINDOW = 20_000
"""Lines that are looked at by one query."""
MAX_WINDOWS = 10
MAX_BYTES = 3 << 20
"""Most bytes of a page: clients take messages of 4 MiB."""


class StoredLine(NamedTuple):
    """The row of one line."""

    line_id: int
    trial_key: int
    run: int
    time_ns: int
    level: int
    rank: int | None
    stdtype: str
    origin: str
    container: str
    agent: str
    message: str

    def size(self) -> int:
        """The approximate size in a message, in bytes."""
        text = len(self.message) if self.message.isascii() else len(self.message.encode())
        return text + LINE_BYTES


@dataclass(frozen=True, slots=True)
class Page:
    """One page of matching lines."""

    lines: list[StoredLine]
    position: int
    """Everything up to this line was looked at."""
    more: bool
    """Whether something is left to be looked at."""
    trials: Mapping[int, str]
    """UUIDs of the trials that wrote the lines, by their keys."""


def read_page(
    connection: Connection,
    wanted: Filter,
    *,
    position: int | None = None,
    descending: bool = False,
    most: int,
    most_bytes: int = MAX_BYTES,
) -> Page:
    """Reads the next matching lines.

    Args:
        connection: Reads.
        wanted: Which lines.
        position: The last line that was looked at; None for the first page.
        descending: Newest first.
        most: Most lines.
        most_bytes: Most bytes; one line more is taken where it alone is longer.
    """
    start = position if position is not None else (2**62 if descending else 0)
    found = _find(connection, wanted)
    if not found:
        return Page([], start, more=False, trials=found)
    scan = _Scan(connection, found, wanted, descending=descending)
    stored: list[StoredLine] = []
    size = 0
    for _ in range(MAX_WINDOWS):
        bound, is_last = scan.bound(start)
        for line in scan.rows(start, bound, most=most + 1 - len(stored)):
            size += line.size()
            if len(stored) == most or (stored and size > most_bytes):
                return Page(stored, stored[-1].line_id, more=True, trials=found)
            stored.append(line)
        start = bound
        if is_last:
            return Page(stored, start, more=False, trials=found)
    return Page(stored, start, more=True, trials=found)


def to_line(line: StoredLine, trials: Mapping[int, str]) -> line_pb2.Line:
    """Converts a row to a line of the contract.

    Args:
        line: Its row.
        trials: UUIDs of trials by their keys, those of the page of the line.
    """
    message = line_pb2.Line(
        message=line.message,
        level=line_pb2.Level.ValueType(line.level),
        rank=line.rank,
        stdtype=line.stdtype,
        line_id=line.line_id,
        run=line.run,
        trial_id=trials[line.trial_key],
        origin=line.origin,
        container=line.container,
        agent=line.agent,
    )
    message.time.seconds, message.time.nanos = divmod(line.time_ns, 1_000_000_000)
    return message


def _find(connection: Connection, wanted: Filter) -> Mapping[int, str]:
    """Returns the UUIDs of the trials whose lines match, by key."""
    if wanted.experiment_id:
        return INTAKE.trials_of(connection, wanted.experiment_id)
    key = INTAKE.find_trial(connection, wanted.trial_id)
    return {} if key is None else {key: wanted.trial_id}


class _Scan:
    def __init__(
        self, connection: Connection, found: Mapping[int, str], wanted: Filter, *, descending: bool
    ) -> None:
        self._connection = connection
        self._wanted = wanted
        self._descending = descending
        self._own = lines.c.trial_key.in_(
            INTAKE.keys_of(wanted.experiment_id) if wanted.experiment_id else list(found)
        )

    def bound(self, start: int) -> tuple[int, bool]:
        """Returns the last line of the next window, and whether it is the last line of the log."""
        return self._bound_among_others(start) if self._wanted.experiment_id else self._bound_by_index(start)

    def _bound_by_index(self, start: int) -> tuple[int, bool]:
        order = lines.c.line_id.desc() if self._descending else lines.c.line_id
        behind = sa.select(lines.c.line_id).where(*self._behind(start)).order_by(order)
        full = self._connection.execute(behind.offset(WINDOW - 1).limit(1)).scalar_one_or_none()
        if full is not None:
            return full, False
        last = sa.func.min if self._descending else sa.func.max
        line_id = self._connection.execute(
            sa.select(last(lines.c.line_id)).where(*self._behind(start))
        ).scalar_one_or_none()
        return (start if line_id is None else line_id), True

    def _bound_among_others(self, start: int) -> tuple[int, bool]:
        # No index has the lines of many trials in order. Between the first and the last of them lie those of
        # other experiments, which count to the window as well.
        first, last = self._span
        if self._descending:
            bound = max(min(start, last + 1) - WINDOW, first)
            return min(start, bound), bound <= first
        bound = min(max(start, first - 1) + WINDOW, last)
        return max(start, bound), bound >= last

    @cached_property
    def _span(self) -> tuple[int, int]:
        """Returns the first and the last line of an experiment, by the index of each trial."""
        trials = INTAKE.trials
        of_trial = lines.c.trial_key == trials.c.trial_key
        firsts = sa.select(sa.func.min(lines.c.line_id)).where(of_trial).correlate(trials).scalar_subquery()
        lasts = sa.select(sa.func.max(lines.c.line_id)).where(of_trial).correlate(trials).scalar_subquery()
        each = sa.select(firsts.label("first"), lasts.label("last")).where(
            trials.c.trial_key.in_(INTAKE.keys_of(self._wanted.experiment_id))
        )
        ends = each.subquery()
        first, last = self._connection.execute(
            sa.select(sa.func.min(ends.c.first), sa.func.max(ends.c.last))
        ).one()
        return (first or 0), (last or 0)

    def rows(self, start: int, bound: int, *, most: int) -> Iterator[StoredLine]:
        """Returns the matching lines of a window."""
        line_id = lines.c.line_id
        order = line_id.desc() if self._descending else line_id
        within = line_id >= bound if self._descending else line_id <= bound
        query = (
            sa.select(*(lines.c[name] for name in StoredLine._fields))
            .where(*self._behind(start), within, *self._wanted.conditions())
            .order_by(order)
        )
        if not self._wanted.needs_row_check:
            query = query.limit(most)
        for row in self._connection.execute(query):
            line = StoredLine._make(row)
            if not self._wanted.needs_row_check or self._wanted.matches(line.message):
                yield line

    def _behind(self, start: int) -> list[sa.ColumnElement[bool]]:
        line_id = lines.c.line_id
        behind: Any = line_id < start if self._descending else line_id > start
        return [self._own, behind]
