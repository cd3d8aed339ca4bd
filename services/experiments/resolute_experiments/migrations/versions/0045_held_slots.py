"""Since when runs hold their slots: those of engines with a queue of their own wait there first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    """Adds the column. How long earlier runs waited at their engines is not known."""
    op.add_column("runs", sa.Column("held_from", sa.Float))
    runs = sa.table("runs", sa.column("started_at"), sa.column("held_from"))
    op.execute(runs.update().values(held_from=runs.c.started_at))
