"""Unfinished multipart uploads.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Remembers what has to be removed if it is not completed."""
    op.create_table(
        "uploads",
        sa.Column("entry", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("checkpoint_id", sa.String(36), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("upload_id", sa.Text, nullable=False),
    )
    op.create_index("uploads_by_checkpoint", "uploads", ["checkpoint_id"])


def downgrade() -> None:
    """Drops what was added."""
    op.drop_table("uploads")
