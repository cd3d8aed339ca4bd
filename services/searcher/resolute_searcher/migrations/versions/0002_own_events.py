"""Events without an identifier, which are never looked up, are left out of the index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_IDENTIFIED = sa.text("event_id != ''")


def upgrade() -> None:
    """Makes the index of identifiers one of those that were given."""
    op.drop_index("entries_by_event_id", "entries")
    op.execute("UPDATE entries SET event_id = '' WHERE event_id LIKE '#%'")
    op.create_index(
        "entries_by_event_id",
        "entries",
        ["search_id", "event_id"],
        unique=True,
        sqlite_where=_IDENTIFIED,
        postgresql_where=_IDENTIFIED,
    )
