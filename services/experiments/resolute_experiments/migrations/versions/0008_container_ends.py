"""The times at which containers ended, and those that were ended because another one had failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Adds columns that say nothing of containers that were there before."""
    op.add_column("containers", sa.Column("ended_at", sa.Float))
    op.add_column("containers", sa.Column("straggler", sa.Boolean, nullable=False, server_default=sa.false()))
