"""The current schema, for a new database."""

from __future__ import annotations

import time

import sqlalchemy as sa

from resolute_experiments.store.schema import metadata, users, validation_cursor


def create(connection: sa.Connection) -> None:
    """Makes every table and the rows that are always there.

    The revisions lead older databases to the same.
    """
    metadata.create_all(connection, checkfirst=False)
    # The operator's token names user 1 without asking.
    connection.execute(users.insert().values(name="admin", role="admin", created_at=time.time()))
    connection.execute(validation_cursor.insert().values(id=1, revision=0))
