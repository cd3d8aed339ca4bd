"""Experiments that ended before their policy could be applied to all checkpoints."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Adds a mark that no experiment has that was there before."""
    op.add_column(
        "experiments", sa.Column("retention_owed", sa.Boolean, nullable=False, server_default=sa.false())
    )
