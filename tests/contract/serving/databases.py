"""A database with a few tables, on each backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from resolute_serving.database.engine import Database


@contextmanager
def open_database(url: str, metadata: sa.MetaData) -> Iterator[Database]:
    """Opens a database and creates the tables of ``metadata`` in it."""
    database = Database(url, name="test")
    try:
        with database.engine.begin() as connection:
            if url.startswith("postgresql"):
                connection.execute(sa.text("CREATE SCHEMA IF NOT EXISTS test"))
            metadata.create_all(connection)
        yield database
    finally:
        database.close()
