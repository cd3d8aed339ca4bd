"""Blocks of rows in the database: adding, reading, and merging small ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.store import codec
from resolute_metrics.store.rows import Rows, join
from resolute_metrics.store.schema import blocks as table
from resolute_metrics.store.schema import columns as columns_table

FULL_ROWS = 8192
FULL_BYTES = 1 << 20
MERGE_AFTER = 32
"""Small blocks that come together before any are put together."""
_TAIL = 256


def full_rows(names: int) -> int:
    """Returns how many rows a full block with this number of columns has."""
    return max(1, min(FULL_ROWS, FULL_BYTES // (8 * (names + 2))))


def is_small(rows: int, names: int) -> bool:
    """Returns whether a block is so small that a series of such blocks is slow to read."""
    return rows * 16 < full_rows(names)


def add(connection: Connection, stream_key: int, rows: Rows) -> None:
    """Stores rows as a block."""
    block = codec.encode(rows)
    inserted = connection.execute(
        table.insert(),
        {
            "stream_key": stream_key,
            "row_count": block.row_count,
            "first_step": block.first_step,
            "last_step": block.last_step,
            "steps": block.steps,
            "sequences": block.sequences,
            "extras": block.extras,
            "times": block.times,
            "matrix": block.matrix,
        },
    )
    if block.columns:
        assert inserted.inserted_primary_key is not None
        key = inserted.inserted_primary_key[0]
        connection.execute(
            columns_table.insert(),
            [
                {"block_key": key, "position": position, "data": data}
                for position, data in enumerate(block.columns)
            ],
        )


def read(connection: Connection, stored: sa.Row[Any]) -> Rows:
    """Decodes a row of ``blocks``; reads its columns if they are stored separately."""
    columns: Sequence[bytes] = ()
    if stored.matrix is None:
        query = (
            sa.select(columns_table.c.data)
            .where(columns_table.c.block_key == stored.block_key)
            .order_by(columns_table.c.position)
        )
        columns = connection.execute(query).scalars().all()
    return codec.decode(
        codec.Block(
            row_count=stored.row_count,
            first_step=stored.first_step,
            last_step=stored.last_step,
            steps=stored.steps,
            sequences=stored.sequences,
            extras=stored.extras,
            times=stored.times,
            matrix=stored.matrix,
            columns=columns,
        )
    )


def overlapping(
    connection: Connection, stream_key: int, *, first_step: int, last_step: int
) -> Sequence[sa.Row[Any]]:
    """Returns the blocks of a stream that may have steps in a range."""
    return connection.execute(
        sa.select(table).where(
            table.c.stream_key == stream_key,
            table.c.last_step >= first_step,
            table.c.first_step <= last_step,
        )
    ).all()


def merge_tail(connection: Connection, stream_key: int, *, names: int) -> None:
    """Merges the newest blocks of a stream; each row is rewritten only a few times.

    It takes from the newest backwards while the next block is no larger than those taken together, which
    makes blocks of doubling sizes, as a binary counter does with its digits.
    """
    tail = connection.execute(
        sa.select(table.c.block_key, table.c.row_count)
        .where(table.c.stream_key == stream_key)
        .order_by(table.c.block_key.desc())
        .limit(_TAIL)
    ).all()
    taken: list[int] = []
    total = 0
    for block in tail:
        if block.row_count > max(total, full_rows(names) // 16) or total + block.row_count > full_rows(names):
            break
        taken.append(block.block_key)
        total += block.row_count
    if len(taken) < 2:
        return
    parts = connection.execute(
        sa.select(table).where(table.c.block_key.in_(taken)).order_by(table.c.block_key)
    ).all()
    rows = join([read(connection, part) for part in parts])
    remove(connection, taken)
    add(connection, stream_key, rows)


def remove(connection: Connection, keys: Iterable[int]) -> None:
    """Deletes blocks."""
    keys = list(keys)
    connection.execute(columns_table.delete().where(columns_table.c.block_key.in_(keys)))
    connection.execute(table.delete().where(table.c.block_key.in_(keys)))
