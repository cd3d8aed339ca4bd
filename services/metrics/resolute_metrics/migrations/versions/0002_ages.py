"""The age of the newest report of each stream, for retention."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """What was there before counts as reported now: better kept for too long than too short."""
    op.add_column("streams", sa.Column("last_time", sa.Float, nullable=False, server_default="0"))
    op.execute(sa.text("UPDATE streams SET last_time = :now").bindparams(now=time.time()))
