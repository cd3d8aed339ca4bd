"""Checkpoints that were written before the cluster was restored or copied.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column; nothing there is inherited yet."""
    op.add_column(
        "checkpoints", sa.Column("inherited", sa.Boolean, nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_column("checkpoints", "inherited")
