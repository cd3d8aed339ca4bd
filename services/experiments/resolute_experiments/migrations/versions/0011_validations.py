"""Best and last validations of trials, notes of experiments, and revisions for conditional updates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Begins to copy validations at the first: those of experiments that have ended come with the others."""
    for name, kind in (
        ("best_value", sa.Float),
        ("best_steps", sa.BigInteger),
        ("last_value", sa.Float),
        ("last_steps", sa.BigInteger),
    ):
        op.add_column("trials", sa.Column(name, kind))
    cursor = op.create_table(
        "validation_cursor",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.get_bind().execute(cursor.insert(), {"id": 1, "revision": 0})
    op.add_column("experiments", sa.Column("notes", sa.Text, nullable=False, server_default=""))
    op.add_column(
        "experiments", sa.Column("edit_revision", sa.BigInteger, nullable=False, server_default="1")
    )
