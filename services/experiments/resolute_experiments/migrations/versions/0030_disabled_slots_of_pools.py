"""Slots are disabled by pool."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Makes the pool a part of the key; slots that are disabled belong to the pool of this machine."""
    connection = op.get_bind()
    before = connection.execute(sa.text("SELECT slot_id, draining, disabled_at FROM disabled_slots"))
    rows = [{"resource_pool": "default", **row} for row in before.mappings()]
    # SQLite cannot change a primary key.
    op.drop_table("disabled_slots")
    table = op.create_table(
        "disabled_slots",
        sa.Column("resource_pool", sa.String(128), primary_key=True),
        sa.Column("slot_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("draining", sa.Boolean, nullable=False),
        sa.Column("disabled_at", sa.Float, nullable=False),
    )
    if rows:
        connection.execute(table.insert(), rows)
