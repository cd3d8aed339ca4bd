"""The changes of the states of trials, with their reasons."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Creates the table; what happened before is not known."""
    op.create_table(
        "trial_transitions",
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("trial_id", sa.String(36), sa.ForeignKey("trials.id"), nullable=False),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("from_state", sa.String(32), nullable=False),
        sa.Column("to_state", sa.String(32), nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("signal_reason", sa.String(16), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("search_event", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_index("trial_transitions_by_trial", "trial_transitions", ["trial_id", "position"])
