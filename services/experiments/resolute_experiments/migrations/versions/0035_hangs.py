"""Hangs of runs.

Revision ID: 0035
Revises: 0034
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Adds the columns; nothing was watched before."""
    op.add_column("runs", sa.Column("hang", sa.Text, nullable=False, server_default=""))
    op.add_column("containers", sa.Column("hang", sa.Text, nullable=False, server_default=""))
