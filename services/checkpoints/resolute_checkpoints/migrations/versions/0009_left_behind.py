"""Checkpoints after the one to which their trial went back.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column; no trial went back before."""
    op.add_column(
        "checkpoints", sa.Column("left_behind", sa.Boolean, nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_column("checkpoints", "left_behind")
