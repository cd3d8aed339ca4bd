"""The machine that each line was written on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Of the lines that are there already it is unknown."""
    op.add_column("lines", sa.Column("agent", sa.String(200), nullable=False, server_default=""))
