"""The effects of log policies on runs, the machines of containers, and the preemption timeout of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the columns."""
    op.add_column("runs", sa.Column("log_policies", sa.JSON, nullable=False, server_default="[]"))
    op.add_column("runs", sa.Column("preemption_timeout", sa.Float))
    op.add_column("containers", sa.Column("node", sa.Integer, nullable=False, server_default="0"))
