"""Quotas of checkpoint storage for workspaces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds a bound that is none for every workspace that was there before."""
    op.add_column("workspaces", sa.Column("storage_bytes", sa.BigInteger, nullable=False, server_default="0"))
