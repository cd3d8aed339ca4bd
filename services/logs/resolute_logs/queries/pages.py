"""Reads lines page by page. A page looks at a bounded stretch of a log, however few lines of it match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    """One line, as its row."""

    line_id: int
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
        """About how many bytes it takes in a message."""
        text = len(self.message) if self.message.isascii() else len(self.message.encode())
        return text + LINE_BYTES


@dataclass(frozen=True, slots=True)
class Page:
    """Some matching lines."""

    lines: list[StoredLine]
    position: int
    """Everything up to this line was looked at."""
    more: bool
    """Whether something is left to be looked at."""


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
    trial_key = INTAKE.find_trial(connection, wanted.trial_id)
    if trial_key is None:
        return Page([], start, more=False)
    scan = _Scan(connection, trial_key, wanted, descending=descending)
    stored: list[StoredLine] = []
    size = 0
    for _ in range(MAX_WINDOWS):
        bound, is_last = scan.bound(start)
        for line in scan.rows(start, bound, most=most + 1 - len(stored)):
            size += line.size()
            if len(stored) == most or (stored and size > most_bytes):
                return Page(stored, stored[-1].line_id, more=True)
            stored.append(line)
        start = bound
        if is_last:
            return Page(stored, start, more=False)
    return Page(stored, start, more=True)


def to_line(line: StoredLine, trial_id: str) -> line_pb2.Line:
    """A line as the contract has it.

    Args:
        line: Its row.
        trial_id: Whose it is.
    """
    message = line_pb2.Line(
        message=line.message,
        level=line_pb2.Level.ValueType(line.level),
        rank=line.rank,
        stdtype=line.stdtype,
        line_id=line.line_id,
        run=line.run,
        trial_id=trial_id,
        origin=line.origin,
        container=line.container,
        agent=line.agent,
    )
    message.time.seconds, message.time.nanos = divmod(line.time_ns, 1_000_000_000)
    return message


class _Scan:
    def __init__(self, connection: Connection, trial_key: int, wanted: Filter, *, descending: bool) -> None:
        self._connection = connection
        self._trial_key = trial_key
        self._wanted = wanted
        self._descending = descending

    def bound(self, start: int) -> tuple[int, bool]:
        """The last line of the next window, and whether nothing lies behind it now."""
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

    def rows(self, start: int, bound: int, *, most: int) -> Iterator[StoredLine]:
        """The matching lines of a window."""
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
        return [lines.c.trial_key == self._trial_key, behind]
