"""The scheduler's reasons why trials wait."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Creates the table; the next pass fills it."""
    op.create_table(
        "wait_reasons",
        sa.Column("experiment_id", sa.String(36), primary_key=True),
        sa.Column("trial_id", sa.String(36), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
