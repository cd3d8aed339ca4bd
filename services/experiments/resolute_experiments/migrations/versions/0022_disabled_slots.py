"""Slots that were taken out of use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Creates the table; every slot is in use."""
    op.create_table(
        "disabled_slots",
        sa.Column("slot_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("draining", sa.Boolean, nullable=False),
        sa.Column("disabled_at", sa.Float, nullable=False),
    )
