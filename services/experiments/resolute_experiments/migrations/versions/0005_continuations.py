"""Experiments that continue after their end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Counts the lives of trials, and keeps what is asked of ended experiments."""
    op.add_column("trials", sa.Column("life", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "continuations",
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("request_id", sa.String(64), nullable=False, unique=True),
        sa.Column("experiment_id", sa.String(36), sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("previous_state", sa.String(32), nullable=False),
        sa.Column("previous_config", sa.JSON, nullable=False),
        sa.Column("max_trials", sa.BigInteger),
        sa.Column("max_length", sa.BigInteger),
        sa.Column("trial_ids", sa.JSON, nullable=False),
        sa.Column("carried_out", sa.Boolean, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("continuations_by_experiment", "continuations", ["experiment_id"])
