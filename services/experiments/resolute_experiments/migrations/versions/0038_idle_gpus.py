"""Idle GPUs.

Revision ID: 0038
Revises: 0037
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Adds the columns; nothing was found idle before."""
    op.add_column("runs", sa.Column("idle", sa.Text, nullable=False, server_default=""))
    op.add_column("containers", sa.Column("idle", sa.Text, nullable=False, server_default=""))
