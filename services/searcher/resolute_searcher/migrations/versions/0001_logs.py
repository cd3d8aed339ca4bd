"""Searches, their logs, their trials."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the first tables."""
    op.create_table(
        "searches",
        sa.Column("search_id", sa.String(36), primary_key=True),
        sa.Column("spec", sa.LargeBinary, nullable=False),
        sa.Column("method_version", sa.Text, nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
        sa.Column("tip", sa.String(32), nullable=False),
        sa.Column("last_action", sa.BigInteger, nullable=False),
        sa.Column("acknowledged", sa.BigInteger, nullable=False),
        sa.Column("over", sa.Boolean, nullable=False),
        sa.Column("requested", sa.BigInteger, nullable=False),
        sa.Column("closed", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("deleted_at", sa.Float),
    )
    op.create_table(
        "entries",
        sa.Column("search_id", sa.String(36), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True),
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("method_version", sa.Text, nullable=False),
        sa.Column("entry", sa.LargeBinary, nullable=False),
        sa.Column("last_action", sa.BigInteger, nullable=False),
        sa.Column("has_actions", sa.Boolean, nullable=False),
        sa.Column("draws", sa.BigInteger, nullable=False),
        sa.Column("tip", sa.String(32), nullable=False),
    )
    op.create_index("entries_by_event_id", "entries", ["search_id", "event_id"], unique=True)
    op.create_index(
        "entries_by_action",
        "entries",
        ["search_id", "last_action"],
        sqlite_where=sa.text("has_actions"),
        postgresql_where=sa.text("has_actions"),
    )
    op.create_table(
        "trials",
        sa.Column("trial_id", sa.String(36), primary_key=True),
        sa.Column("search_id", sa.String(36), nullable=False),
        sa.Column("request_id", sa.String(36), nullable=False),
        sa.Column("progress", sa.Float, nullable=False),
    )
    op.create_index("trials_by_search", "trials", ["search_id"])
