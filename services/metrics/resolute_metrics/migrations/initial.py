"""The current schema, for a new database."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_metrics.store.schema import METADATA, blocks, columns, validation_revisions


def create(connection: sa.Connection) -> None:
    """Makes every table and the rows that are always there.

    The revisions lead older databases to the same.
    """
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(validation_revisions.insert().values(id=1, latest=0))
    if connection.dialect.name == "postgresql":
        # Doubles hardly compress; trying costs more than writing them.
        for column in (blocks.c.times, blocks.c.matrix, columns.c.data):
            connection.execute(
                sa.text(
                    f'ALTER TABLE "{column.table.name}" ALTER COLUMN "{column.name}" SET STORAGE EXTERNAL'
                )
            )
