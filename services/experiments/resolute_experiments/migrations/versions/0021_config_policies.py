"""Policies for configs, of the cluster and of workspaces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Creates the table, empty."""
    op.create_table(
        "config_policies",
        sa.Column("workspace_number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("invariants", sa.JSON, nullable=False),
        sa.Column("max_slots", sa.Integer),
        sa.Column("priority_limit", sa.Integer),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
