"""Alerts in the database: documents of workspaces, and deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import alert_deliveries, alert_documents
from resolute_serving.database.engine import insert_new

CLUSTER = 0
"""In place of a workspace's number: the alerts of the cluster."""
KEPT_SECONDS = 7 * 86400.0
"""How long deliveries are remembered: for as long an alert of the same key is not sent again."""
_KEYS_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class StoredRules:
    """The rules of one document."""

    workspace_number: int
    rules: tuple[dict[str, Any], ...]
    only_named: frozenset[str]
    """Endpoints to which only experiments lead that name them."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One row of ``alert_deliveries``."""

    position: int
    key: str
    workspace_number: int
    endpoint: str
    alert: dict[str, Any]
    created_at: float
    due_at: float | None
    attempts: int
    delivered_at: float | None
    problem: str


def rules(connection: Connection, workspace_numbers: Collection[int] | None = None) -> list[StoredRules]:
    """Reads the rules of some workspaces, ``CLUSTER`` for the cluster's; of all where none are named."""
    table = alert_documents.c
    query = sa.select(table.workspace_number, table.rules, table.only_named)
    if workspace_numbers is not None:
        query = query.where(table.workspace_number.in_(workspace_numbers))
    return [
        StoredRules(
            workspace_number=row.workspace_number,
            rules=tuple(row.rules),
            only_named=frozenset(row.only_named),
        )
        for row in connection.execute(query)
    ]


def any_rules(connection: Connection) -> bool:
    """Whether there is any rule."""
    return connection.execute(sa.select(alert_documents.c.workspace_number).limit(1)).first() is not None


def sealed(connection: Connection, workspace_number: int) -> bytes | None:
    """Reads the encrypted document of a workspace."""
    query = sa.select(alert_documents.c.sealed).where(alert_documents.c.workspace_number == workspace_number)
    found = connection.execute(query).scalar()
    return None if found is None else bytes(found)


def all_sealed(connection: Connection) -> dict[int, bytes]:
    """Reads the encrypted documents by the numbers of their workspaces."""
    rows = connection.execute(sa.select(alert_documents.c.workspace_number, alert_documents.c.sealed))
    return {row.workspace_number: bytes(row.sealed) for row in rows}


def reseal(connection: Connection, workspace_number: int, sealed: bytes) -> None:
    """Writes the same document, encrypted with another key."""
    own = sa.update(alert_documents).where(alert_documents.c.workspace_number == workspace_number)
    connection.execute(own.values(sealed=sealed))


def write(connection: Connection, stored: StoredRules, *, sealed: bytes, now: float) -> None:
    """Writes a document in place of the one that was there."""
    delete(connection, stored.workspace_number)
    connection.execute(
        sa.insert(alert_documents).values(
            workspace_number=stored.workspace_number,
            sealed=sealed,
            rules=list(stored.rules),
            only_named=sorted(stored.only_named),
            updated_at=now,
        )
    )


def delete(connection: Connection, workspace_number: int) -> None:
    """Removes the document of a workspace."""
    connection.execute(
        sa.delete(alert_documents).where(alert_documents.c.workspace_number == workspace_number)
    )


def put(
    connection: Connection,
    *,
    key: str,
    alert: Mapping[str, Any],
    endpoints: Iterable[tuple[int, str]],
    now: float,
) -> None:
    """Adds a delivery for each endpoint, given by its workspace and name, that has none of the key."""
    for workspace_number, endpoint in endpoints:
        insert_new(
            connection,
            alert_deliveries,
            {
                "key": key,
                "workspace_number": workspace_number,
                "endpoint": endpoint,
                "alert": dict(alert),
                "created_at": now,
                "due_at": now,
            },
        )


def delivered(connection: Connection, keys: Sequence[str]) -> set[tuple[str, int, str]]:
    """The deliveries that there are of some keys: each by key, workspace and name of the endpoint."""
    table = alert_deliveries.c
    found: set[tuple[str, int, str]] = set()
    for at in range(0, len(keys), _KEYS_AT_ONCE):
        query = sa.select(table.key, table.workspace_number, table.endpoint)
        some = query.where(table.key.in_(keys[at : at + _KEYS_AT_ONCE]))
        found.update((row.key, row.workspace_number, row.endpoint) for row in connection.execute(some))
    return found


_FIRST_DUE = sa.select(sa.func.min(alert_deliveries.c.due_at))


def first_due(connection: Connection) -> float | None:
    """When something is to be sent next, as Unix time; None if nothing is."""
    first: float | None = connection.execute(_FIRST_DUE).scalar_one()
    return first


def due(
    connection: Connection,
    *,
    now: float,
    until: float,
    limit: int,
    busy: Mapping[tuple[int, str], int],
    of_endpoint: int,
) -> list[Delivery]:
    """Claims deliveries until some time, oldest first: one that is not settled by then is sent again.

    Args:
        connection: Writes.
        now: What the time is.
        until: The end of the claims.
        limit: Most of them.
        busy: How many are being sent, by workspace and endpoint.
        of_endpoint: Most that one endpoint is sent at a time.
    """
    table = alert_deliveries
    full = [key for key, count in busy.items() if count >= of_endpoint]
    query = (
        sa.select(table)
        .where(table.c.due_at <= now, sa.tuple_(table.c.workspace_number, table.c.endpoint).not_in(full))
        .order_by(table.c.due_at, table.c.position)
        .limit(10 * limit)
        .with_for_update(skip_locked=True)
    )
    claimed: list[Delivery] = []
    counts = Counter(busy)
    for row in connection.execute(query).all():
        key = (row.workspace_number, row.endpoint)
        if counts[key] < of_endpoint and len(claimed) < limit:
            counts[key] += 1
            claimed.append(_delivery(row))
    positions = [delivery.position for delivery in claimed]
    connection.execute(sa.update(table).where(table.c.position.in_(positions)).values(due_at=until))
    return claimed


def settle(
    connection: Connection,
    position: int,
    *,
    delivered_at: float | None = None,
    due_at: float | None = None,
    problem: str = "",
) -> None:
    """Notes what became of an attempt."""
    table = alert_deliveries
    connection.execute(
        sa.update(table)
        .where(table.c.position == position)
        .values(
            delivered_at=delivered_at, due_at=due_at, problem=problem[:1000], attempts=table.c.attempts + 1
        )
    )


def forget(connection: Connection, *, before: float) -> None:
    """Removes old deliveries that are not due any more."""
    table = alert_deliveries.c
    connection.execute(sa.delete(alert_deliveries).where(table.due_at.is_(None), table.created_at < before))


def latest(connection: Connection, workspace_number: int, *, limit: int) -> list[Delivery]:
    """Reads the latest deliveries of a workspace, newest first."""
    table = alert_deliveries
    query = sa.select(table).where(table.c.workspace_number == workspace_number)
    rows = connection.execute(query.order_by(table.c.position.desc()).limit(limit))
    return [_delivery(row) for row in rows]


def _delivery(row: sa.Row[Any]) -> Delivery:
    return Delivery(**row._mapping)
