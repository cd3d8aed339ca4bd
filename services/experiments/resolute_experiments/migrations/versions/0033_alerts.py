"""Alerts: documents of workspaces, and deliveries.

Revision ID: 0033
Revises: 0032
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "alert_documents",
        sa.Column("workspace_number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("rules", sa.JSON, nullable=False),
        sa.Column("only_named", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
    op.create_table(
        "alert_deliveries",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("workspace_number", sa.BigInteger, nullable=False),
        sa.Column("endpoint", sa.String(256), nullable=False),
        sa.Column("alert", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("due_at", sa.Float),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("delivered_at", sa.Float),
        sa.Column("problem", sa.Text, nullable=False, server_default=""),
        sa.UniqueConstraint("key", "workspace_number", "endpoint", name="alert_deliveries_once"),
        sqlite_autoincrement=True,
    )
    op.create_index("alert_deliveries_by_due", "alert_deliveries", ["due_at"])
    op.create_index("alert_deliveries_by_workspace", "alert_deliveries", ["workspace_number", "position"])
