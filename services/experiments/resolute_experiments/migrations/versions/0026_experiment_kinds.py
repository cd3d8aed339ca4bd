"""Kinds of experiments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Adds the column; all experiments so far are searches."""
    op.add_column("experiments", sa.Column("kind", sa.String(16), nullable=False, server_default="SEARCH"))
