"""Pins, models with their versions, and the numbers of files of checkpoints.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns, counts files, and makes the tables of models."""
    op.add_column("checkpoints", sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("checkpoints", sa.Column("file_count", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(
        "UPDATE checkpoints SET file_count = (SELECT count(*) FROM files "
        "WHERE files.checkpoint_id = checkpoints.checkpoint_id AND NOT files.doomed)"
    )
    op.create_table(
        "models",
        sa.Column("model_id", sa.String(36), primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("name", "description", "notes", "labels", "metadata", "workspace", "owner")
        ),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Column("next_version", sa.Integer, nullable=False),
        sa.Column("create_time", sa.Double, nullable=False),
        sa.Column("update_time", sa.Double, nullable=False),
    )
    op.create_index("models_by_name", "models", ["name"], unique=True)
    op.create_index("models_by_number", "models", ["number"], unique=True)
    op.create_table(
        "model_versions",
        sa.Column("model_id", sa.String(36), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("request_id", sa.String(36), nullable=False),
        sa.Column("checkpoint_id", sa.String(36), nullable=False),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("name", "comment", "notes", "labels", "metadata", "owner")
        ),
        sa.Column("create_time", sa.Double, nullable=False),
    )
    op.create_index("model_versions_by_request", "model_versions", ["request_id"], unique=True)
    op.create_index("model_versions_by_checkpoint", "model_versions", ["checkpoint_id"])


def downgrade() -> None:
    """Drops what was added."""
    op.drop_table("model_versions")
    op.drop_table("models")
    op.drop_column("checkpoints", "file_count")
    op.drop_column("checkpoints", "pinned")
