"""Disabled slots: no run starts on them until they are enabled again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import disabled_slots as table


def write(
    connection: Connection, slot_ids: Collection[int], *, pool: str, draining: bool, now: float
) -> None:
    """Disables slots, whether they are or not.

    Args:
        connection: A transaction.
        slot_ids: The slots.
        pool: Their pool.
        draining: Whether the runs that hold them go on to their end.
        now: Unix seconds.
    """
    remove(connection, slot_ids, pool=pool)
    rows = [
        {"resource_pool": pool, "slot_id": slot, "draining": draining, "disabled_at": now}
        for slot in sorted(set(slot_ids))
    ]
    if rows:
        connection.execute(sa.insert(table), rows)


def remove(connection: Connection, slot_ids: Collection[int], *, pool: str) -> None:
    """Enables slots of a pool, whether they are or not."""
    connection.execute(sa.delete(table).where(table.c.resource_pool == pool, table.c.slot_id.in_(slot_ids)))


def read(connection: Connection) -> Mapping[str, Mapping[int, bool]]:
    """Reads every disabled slot by its pool, with whether the run that holds it goes on to its end.

    A pool of which no slot is disabled is an empty map.
    """
    disabled: defaultdict[str, dict[int, bool]] = defaultdict(dict)
    for row in connection.execute(sa.select(table.c.resource_pool, table.c.slot_id, table.c.draining)):
        disabled[row.resource_pool][row.slot_id] = row.draining
    return disabled
