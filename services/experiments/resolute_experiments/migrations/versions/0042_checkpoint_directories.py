"""The checkpoint directories of runs, if they belong to their workspaces.

Revision ID: 0042
Revises: 0041
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    """Adds the column and its index; runs from before have what their config names."""
    column = sa.Column("checkpoint_directory", sa.Text, nullable=False, server_default="")
    op.add_column("runs", column)
    op.create_index("runs_by_directory", "runs", ["experiment_id", "checkpoint_directory"])
