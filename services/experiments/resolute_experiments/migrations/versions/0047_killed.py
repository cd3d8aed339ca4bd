"""Which experiments were killed.

Revision ID: 0047
Revises: 0046
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    """Adds the column; those that ended before count as cancelled."""
    op.add_column("experiments", sa.Column("killed", sa.Boolean, nullable=False, server_default=sa.false()))
