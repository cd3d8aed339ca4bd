"""Notes of trials, and the speed of experiments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    """Adds the columns; nothing was written of trials before."""
    for column in (
        sa.Column("labels", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("notes", sa.Text, nullable=False, server_default=""),
        sa.Column("edit_revision", sa.BigInteger, nullable=False, server_default="1"),
    ):
        op.add_column("trials", column)
    op.add_column("experiments", sa.Column("steps_per_second", sa.Float))
