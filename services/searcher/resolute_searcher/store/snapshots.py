"""The rows of snapshots: states of searches at some entry of their logs, stored as a cache."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_searcher.store.schema import entries, searches, snapshots


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot.

    Attributes:
        sequence: Position of the last entry that it includes.
        tip: Tip of the log at that entry.
        code: Fingerprint of the code that wrote it.
        state: The packed state.
    """

    sequence: int
    tip: str
    code: str
    state: bytes


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A stored entry of a log, for `entry_from`.

    Attributes:
        sequence: Position of the entry.
        tip: Tip of the log after this entry.
        entry: The serialized message.
        last_action: Position of the last action so far.
        draws: Number of random words drawn so far.
    """

    sequence: int
    tip: str
    entry: bytes
    last_action: int
    draws: int


def read_snapshot(connection: Connection, search_id: str, code: str) -> Snapshot | None:
    """Returns the snapshot of a search, if it belongs to this code and to the current log."""
    if snapshot_sequence(connection, search_id, code) == 0:
        return None
    state = connection.execute(
        sa.select(snapshots.c.sequence, snapshots.c.tip, snapshots.c.state).where(
            snapshots.c.search_id == search_id
        )
    ).one()
    return Snapshot(sequence=state.sequence, tip=state.tip, code=code, state=state.state)


def snapshot_sequence(connection: Connection, search_id: str, code: str) -> int:
    """Returns the position of the snapshot that `read_snapshot` returns; 0 without one."""
    sequence = connection.execute(
        sa.select(snapshots.c.sequence)
        .join(
            entries,
            sa.and_(
                entries.c.search_id == snapshots.c.search_id,
                entries.c.sequence == snapshots.c.sequence,
                entries.c.tip == snapshots.c.tip,
            ),
        )
        .where(snapshots.c.search_id == search_id, snapshots.c.code == code)
    ).scalar_one_or_none()
    return sequence or 0


def read_stored_entries(
    connection: Connection, search_id: str, *, after: int, limit: int
) -> list[StoredEntry]:
    """Reads stored entries after a position, in order."""
    rows = connection.execute(
        sa.select(entries.c.sequence, entries.c.tip, entries.c.entry, entries.c.last_action, entries.c.draws)
        .where(entries.c.search_id == search_id, entries.c.sequence > after)
        .order_by(entries.c.sequence)
        .limit(limit)
    )
    return [StoredEntry(row.sequence, row.tip, row.entry, row.last_action, row.draws) for row in rows]


def write_snapshot(connection: Connection, search_id: str, snapshot: Snapshot) -> None:
    """Replaces the snapshot of a search, unless the search was deleted."""
    delete_snapshot(connection, search_id)
    live = sa.select(searches.c.search_id).where(
        searches.c.search_id == search_id, searches.c.deleted_at.is_(None)
    )
    if connection.execute(live).first() is None:
        return
    connection.execute(
        sa.insert(snapshots),
        {
            "search_id": search_id,
            "sequence": snapshot.sequence,
            "tip": snapshot.tip,
            "code": snapshot.code,
            "state": snapshot.state,
        },
    )


def delete_snapshot(connection: Connection, search_id: str) -> None:
    """Removes the snapshot of a search, if it has one."""
    connection.execute(sa.delete(snapshots).where(snapshots.c.search_id == search_id))
