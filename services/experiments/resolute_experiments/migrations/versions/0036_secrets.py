"""Secrets for scripts.

Revision ID: 0036
Revises: 0035
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "secrets",
        sa.Column("user_number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("workspace_number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
