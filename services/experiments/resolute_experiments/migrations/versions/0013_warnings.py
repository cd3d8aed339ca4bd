"""Warnings of experiments, such as that no trial reports the metric of the search."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Gives every experiment room for a warning; those that have ended keep none."""
    op.add_column("experiments", sa.Column("warning", sa.Text, nullable=False, server_default=""))
