"""Removes an experiment's reports in batches, so that no transaction blocks others for long."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.store import blocks
from resolute_metrics.store.rows import NUMBER_BYTES, ROW_BYTES
from resolute_metrics.store.schema import INTAKE, refusals, streams, validations
from resolute_metrics.store.schema import blocks as blocks_table

_BLOCKS_AT_ONCE = 200


def delete_expired(connection: Connection, *, before: float) -> bool:
    """Removes some points of streams that had no new points since a Unix time.

    Summaries and the best and last validations stay, and sources keep their place in the sequence: a spool
    that comes again brings nothing back.

    Returns:
        Whether more may be left.
    """
    old = sa.select(streams.c.stream_key).where(streams.c.last_time < before)
    query = sa.select(blocks_table.c.block_key).where(blocks_table.c.stream_key.in_(old))
    block_keys = list(connection.execute(query.limit(_BLOCKS_AT_ONCE)).scalars())
    if block_keys:
        _give_back(connection, block_keys)
        blocks.remove(connection, block_keys)
    return len(block_keys) == _BLOCKS_AT_ONCE


def _give_back(connection: Connection, block_keys: Sequence[int]) -> None:
    """Subtracts the bytes of blocks from the stored bytes."""
    table = blocks_table
    rows = connection.execute(
        sa.select(streams.c.trial_key, streams.c.names, sa.func.sum(table.c.row_count).label("rows"))
        .join(table, table.c.stream_key == streams.c.stream_key)
        .where(table.c.block_key.in_(block_keys))
        .group_by(streams.c.stream_key, streams.c.trial_key, streams.c.names)
    )
    sizes: Counter[int] = Counter()
    for row in rows:
        sizes[row.trial_key] += int(row.rows) * (ROW_BYTES + NUMBER_BYTES * len(json.loads(row.names)))
    INTAKE.give_back(connection, sizes)


def delete_part(connection: Connection, trial: int) -> bool:
    """Removes a part of the data of a trial.

    Returns:
        Whether more may be left.
    """
    of_trial = sa.select(streams.c.stream_key).where(streams.c.trial_key == trial)
    keys = connection.execute(
        sa.select(blocks_table.c.block_key)
        .where(blocks_table.c.stream_key.in_(of_trial))
        .limit(_BLOCKS_AT_ONCE)
    ).scalars()
    block_keys = list(keys)
    if block_keys:
        blocks.remove(connection, block_keys)
        return True
    sources = sa.select(INTAKE.sources.c.source_key).where(INTAKE.sources.c.trial_key == trial)
    connection.execute(refusals.delete().where(refusals.c.source_key.in_(sources)))
    for table in (streams, validations):
        connection.execute(table.delete().where(table.c.trial_key == trial))
    return False
