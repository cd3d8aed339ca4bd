"""Runs outside of the cluster, with their external names."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Adds columns that are empty for everything that was there before."""
    op.add_column(
        "experiments", sa.Column("unmanaged", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column("experiments", sa.Column("external_id", sa.String(256)))
    op.create_index("experiments_by_external_id", "experiments", ["external_id"], unique=True)
    op.add_column("trials", sa.Column("external_id", sa.String(256)))
    op.create_index("trials_by_external_id", "trials", ["experiment_id", "external_id"], unique=True)
    op.add_column("runs", sa.Column("request_id", sa.String(36)))
    op.create_index("runs_by_request", "runs", ["request_id"], unique=True)
