"""The current schema, for a new database."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_logs.store.schema import METADATA


def create(connection: sa.Connection) -> None:
    """Makes every table; the revisions lead older databases to the same."""
    METADATA.create_all(connection, checkfirst=False)
