"""The usage of the machines of runs.

Revision ID: 0041
Revises: 0040
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Adds the table; nothing was kept before."""
    op.create_table(
        "machine_usage",
        sa.Column("allocation_id", sa.String(64), primary_key=True),
        sa.Column("container_rank", sa.Integer, primary_key=True),
        sa.Column("experiment_id", sa.String(36), nullable=False, index=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
