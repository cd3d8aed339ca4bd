"""The stored bytes of each trial, and the counts of reports dropped above a limit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Of what is stored already nothing is counted."""
    for name in ("workspace", "bytes", "dropped", "dropped_bytes", "told"):
        op.add_column("trials", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("trials", sa.Column("byte_limit", sa.Text, nullable=False, server_default=""))
    op.create_index("ix_trials_workspace", "trials", ["workspace"])
