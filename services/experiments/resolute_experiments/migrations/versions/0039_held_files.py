"""Held files of failed runs.

Revision ID: 0039
Revises: 0038
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Adds the column; nothing was held before."""
    op.add_column("runs", sa.Column("held_until", sa.Float))
