"""The values that were left out of the reports of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Adds the column; of earlier runs only their logs say it."""
    op.add_column("runs", sa.Column("left_out", sa.JSON, nullable=False, server_default="[]"))
