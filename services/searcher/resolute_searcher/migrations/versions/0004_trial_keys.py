"""The identifier of a trial within its search is named key, as in the contract."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Renames the column."""
    op.execute("ALTER TABLE trials RENAME COLUMN request_id TO trial_key")
