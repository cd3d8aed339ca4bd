"""Guards: the positions up to which reports were judged, and the checkpoints that trials go back to.

Revision ID: 0037
Revises: 0036
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Adds the columns; nothing was guarded before."""
    op.add_column("runs", sa.Column("guard", sa.Text, nullable=False, server_default=""))
    op.add_column("runs", sa.Column("bad_steps", sa.BigInteger))
    op.add_column("runs", sa.Column("good_steps", sa.BigInteger))
    op.add_column("trials", sa.Column("guarded_steps", sa.BigInteger))
