"""Boards of projects.

Revision ID: 0043
Revises: 0042
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    """Adds the tables; only users had boards before, among their settings."""
    op.create_table(
        "boards",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("project_number", sa.Integer, nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.UniqueConstraint("project_number", "name", name="boards_by_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "board_versions",
        sa.Column("board_number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("path", sa.Text),
        sa.Column("report", sa.Text),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
