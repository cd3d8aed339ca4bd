"""Inserts that tolerate another writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection


def insert_if_absent(connection: Connection, table: sa.Table, values: Mapping[str, Any]) -> bool:
    """Inserts a row unless its key is there; on PostgreSQL it waits for whoever inserts the same key now.

    Returns:
        Whether the row is new.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    key = list(table.primary_key)
    # Drivers do not agree on how many rows such an insert changed; what it returns is certain.
    statement = insert(table).values(**values).on_conflict_do_nothing().returning(*key)
    return connection.execute(statement).first() is not None
