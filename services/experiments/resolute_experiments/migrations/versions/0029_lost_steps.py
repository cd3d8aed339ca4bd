"""The number of steps that the ends of runs lost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Adds the columns; of earlier runs it is not known."""
    for name in ("kept_steps", "lost_steps"):
        op.add_column("runs", sa.Column(name, sa.BigInteger))
    op.add_column("trials", sa.Column("lost_steps", sa.BigInteger, nullable=False, server_default="0"))
