"""Data for the retention of checkpoints while their trials run.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COLUMNS = ("unranked", "ranked", "metric", "metric_time", "keep_reasons", "held_until")


def upgrade() -> None:
    """Adds the columns; nothing is ranked: it stays until its trial commits again or its experiment ends."""
    for name in ("unranked", "ranked"):
        op.add_column("checkpoints", sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("checkpoints", sa.Column("metric", sa.Double))
    op.add_column("checkpoints", sa.Column("metric_time", sa.Double))
    op.add_column("checkpoints", sa.Column("keep_reasons", sa.Text, nullable=False, server_default=""))
    op.add_column("checkpoints", sa.Column("held_until", sa.Double, nullable=False, server_default="0"))
    op.create_index("checkpoints_by_unranked", "checkpoints", ["unranked"])


def downgrade() -> None:
    """Drops them."""
    op.drop_index("checkpoints_by_unranked", "checkpoints")
    for name in _COLUMNS:
        op.drop_column("checkpoints", name)
