"""The current schema, for a new database."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_searcher.store.schema import metadata


def create(connection: sa.Connection) -> None:
    """Makes every table; the revisions lead older databases to the same."""
    metadata.create_all(connection, checkfirst=False)
