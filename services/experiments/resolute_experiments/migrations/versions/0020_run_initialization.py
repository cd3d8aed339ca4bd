"""The times at which the scripts of runs had initialized the Core API."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Adds the column; of earlier runs it is not known."""
    op.add_column("runs", sa.Column("initialized_at", sa.Float))
