"""The rows of searches."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_spec_pb2 as pb
from resolute.errors import (
    InvalidArgumentError,
    NotFoundError,
)
from resolute_searcher.store.schema import entries, searches, trials
from resolute_searcher.store.snapshots import delete_snapshot


@dataclass(frozen=True, slots=True)
class SearchRow:
    """The row of a search, without its log.

    Attributes:
        search_id: UUID.
        spec: Spec of the search.
        method_version: Name and version of the method at creation.
        last_sequence: Last position of the log.
        last_action: Last position of the actions.
        acknowledged: Position of the last acknowledged action.
        over: Whether the search has shut down.
        requested: Number of requested trials.
        closed: Number of closed trials.
        created_at: Time of creation, in seconds since 1970.
    """

    search_id: str
    spec: pb.SearchSpec
    method_version: str
    last_sequence: int
    last_action: int
    acknowledged: int
    over: bool
    requested: int
    closed: int
    created_at: float


def read_search(connection: Connection, search_id: str) -> SearchRow:
    """Reads a search's row.

    Raises:
        NotFoundError: There is no such search.
    """
    row = connection.execute(sa.select(searches).where(searches.c.search_id == search_id)).one_or_none()
    if row is None or row.deleted_at is not None:
        raise search_not_found(search_id)
    return SearchRow(
        search_id=search_id,
        spec=pb.SearchSpec.FromString(row.spec),
        method_version=row.method_version,
        last_sequence=row.last_sequence,
        last_action=row.last_action,
        acknowledged=row.acknowledged,
        over=row.over,
        requested=row.requested,
        closed=row.closed,
        created_at=row.created_at,
    )


def acknowledge(connection: Connection, search_id: str, sequence: int) -> None:
    """Records that actions up to a position were applied; a smaller position changes nothing.

    Raises:
        NotFoundError: There is no such search.
        InvalidArgumentError: There are no actions that far.
    """
    row = read_search(connection, search_id)
    if not 0 <= sequence <= row.last_action:
        raise InvalidArgumentError(
            f"search {search_id} has actions up to {row.last_action}; {sequence} cannot be acknowledged"
        )
    if sequence > row.acknowledged:
        connection.execute(
            sa.update(searches)
            .where(searches.c.search_id == search_id, searches.c.acknowledged < sequence)
            .values(acknowledged=sequence)
        )


def delete_search(connection: Connection, search_id: str, now: float) -> None:
    """Removes a search and leaves a tombstone, even if the search never existed. Idempotent."""
    connection.execute(sa.delete(entries).where(entries.c.search_id == search_id))
    connection.execute(sa.delete(trials).where(trials.c.search_id == search_id))
    delete_snapshot(connection, search_id)
    marked = connection.execute(
        sa.update(searches)
        .where(searches.c.search_id == search_id)
        .values(spec=b"", deleted_at=sa.func.coalesce(searches.c.deleted_at, now))
    )
    if marked.rowcount:
        return
    connection.execute(
        sa.insert(searches),
        {
            "search_id": search_id,
            "spec": b"",
            "method_version": "",
            "last_sequence": 0,
            "tip": "",
            "last_action": 0,
            "acknowledged": 0,
            "over": True,
            "requested": 0,
            "closed": 0,
            "created_at": now,
            "deleted_at": now,
        },
    )


def read_tips(connection: Connection, *, search_ids: list[str]) -> dict[str, str]:
    """Returns the tips of the logs of those searches that exist."""
    rows = connection.execute(
        sa.select(searches.c.search_id, searches.c.tip).where(
            searches.c.search_id.in_(search_ids), searches.c.deleted_at.is_(None)
        )
    )
    return {row.search_id: row.tip for row in rows}


def search_not_found(search_id: str) -> NotFoundError:
    """Returns the error for a search that does not exist."""
    return NotFoundError(f"search {search_id} does not exist", resource=f"search {search_id}")
