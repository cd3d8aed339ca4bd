"""Secrets for scripts in the database, encrypted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.store.schema import secrets as table
from resolute_serving.database.engine import insert_new


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The holder of a secret: a user or a workspace. Exactly one number is not zero."""

    user_number: int = 0
    workspace_number: int = 0


@dataclass(frozen=True, kw_only=True)
class Secret:
    """One row of ``secrets``."""

    name: str
    sealed: bytes
    created_at: float
    updated_at: float


def of_holder(
    connection: Connection, holder: Holder, names: Collection[str] | None = None
) -> dict[str, Secret]:
    """Reads the secrets of a holder by name, in order; all of them where none are named."""
    query = (
        sa.select(table.c.name, table.c.sealed, table.c.created_at, table.c.updated_at)
        .where(_of(holder))
        .order_by(table.c.name)
    )
    if names is not None:
        query = query.where(table.c.name.in_(names))
    return {
        row.name: Secret(**{**row._mapping, "sealed": bytes(row.sealed)}) for row in connection.execute(query)
    }


def put(connection: Connection, holder: Holder, name: str, sealed: bytes, *, now: float) -> None:
    """Writes a secret in place of the one of its name."""
    values = {
        "user_number": holder.user_number,
        "workspace_number": holder.workspace_number,
        "name": name,
        "sealed": sealed,
        "created_at": now,
        "updated_at": now,
    }
    if not insert_new(connection, table, values):
        named = sa.update(table).where(_of(holder), table.c.name == name)
        connection.execute(named.values(sealed=sealed, updated_at=now))


def every(connection: Connection) -> list[tuple[Holder, str, bytes]]:
    """Reads all secrets: whose each is, its name, and its encrypted value."""
    query = sa.select(table.c.user_number, table.c.workspace_number, table.c.name, table.c.sealed)
    return [
        (
            Holder(user_number=row.user_number, workspace_number=row.workspace_number),
            row.name,
            bytes(row.sealed),
        )
        for row in connection.execute(query)
    ]


def reseal(connection: Connection, holder: Holder, name: str, sealed: bytes) -> None:
    """Writes the same value, encrypted with another key."""
    named = sa.update(table).where(_of(holder), table.c.name == name)
    connection.execute(named.values(sealed=sealed))


def delete(connection: Connection, holder: Holder, name: str) -> None:
    """Removes a secret.

    Raises:
        NotFoundError: There is none of the name.
    """
    deleted = connection.execute(sa.delete(table).where(_of(holder), table.c.name == name))
    if not deleted.rowcount:
        raise NotFoundError(
            f"secret {name!r} does not exist; `resolute secret list` shows those that do",
            resource=f"secret {name}",
        )


def delete_all(connection: Connection, holder: Holder) -> None:
    """Removes every secret of a holder."""
    connection.execute(sa.delete(table).where(_of(holder)))


def _of(holder: Holder) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.c.user_number == holder.user_number, table.c.workspace_number == holder.workspace_number
    )
