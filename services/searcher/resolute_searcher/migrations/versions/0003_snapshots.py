"""Snapshots of long searches: a cache that saves reading their whole logs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Creates the table of snapshots, empty."""
    op.create_table(
        "snapshots",
        sa.Column("search_id", sa.String(36), primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("tip", sa.String(32), nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
