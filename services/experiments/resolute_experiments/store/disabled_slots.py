"""Slots that were taken out of use: no run starts on them until they are enabled again."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import disabled_slots as table


def write(connection: Connection, slot_ids: Collection[int], *, draining: bool, now: float) -> None:
    """Disables slots, whether they are or not.

    Args:
        connection: A transaction.
        slot_ids: The slots.
        draining: Whether the runs that hold them go on to their end.
        now: Unix seconds.
    """
    remove(connection, slot_ids)
    rows = [{"slot_id": slot, "draining": draining, "disabled_at": now} for slot in sorted(set(slot_ids))]
    if rows:
        connection.execute(sa.insert(table), rows)


def remove(connection: Connection, slot_ids: Collection[int]) -> None:
    """Enables slots, whether they are or not."""
    connection.execute(sa.delete(table).where(table.c.slot_id.in_(slot_ids)))


def read(connection: Connection) -> dict[int, bool]:
    """Reads every disabled slot, with whether the run that holds it goes on to its end."""
    rows = connection.execute(sa.select(table.c.slot_id, table.c.draining))
    return {row.slot_id: row.draining for row in rows}
