"""Since when runs do not move.

Revision ID: 0046
Revises: 0045
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    """Adds the column; of runs that stand still now it is not known."""
    op.add_column("runs", sa.Column("stuck_since", sa.Float))
