"""The first tables of the registry.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes every table."""
    op.create_table(
        "experiments",
        sa.Column("experiment_id", sa.String(36), primary_key=True),
        sa.Column("delete_time", sa.Double),
    )
    op.create_table(
        "trials",
        sa.Column("trial_id", sa.String(36), primary_key=True),
        sa.Column("min_run", sa.Integer, nullable=False),
    )
    _create_checkpoints()
    op.create_table(
        "files",
        sa.Column("checkpoint_id", sa.String(36), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("doomed", sa.Boolean, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("entry", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("object", sa.String(36), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("audit_by_object", "audit", ["object"])


def _create_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("checkpoint_id", sa.String(36), primary_key=True),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("trial_id", sa.String(36), nullable=False),
        sa.Column("experiment_id", sa.String(36), nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("storage", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("manifest_digest", sa.String(64), nullable=False),
        sa.Column("manifest_bytes", sa.BigInteger, nullable=False),
        sa.Column("steps_completed", sa.BigInteger, nullable=False),
        sa.Column("total_size", sa.BigInteger, nullable=False),
        sa.Column("create_time", sa.Double, nullable=False),
        sa.Column("commit_time", sa.Double),
        sa.Column("list_time", sa.Double, nullable=False),
        sa.Column("removal_time", sa.Double),
        sa.Column("removal_attempts", sa.Integer, nullable=False),
        sa.Column("removal_claim", sa.Integer, nullable=False),
    )
    for name, columns in (
        ("checkpoints_by_trial", ["trial_id", "list_time", "checkpoint_id"]),
        ("checkpoints_by_experiment", ["experiment_id", "list_time", "checkpoint_id"]),
        ("checkpoints_by_state", ["state", "create_time"]),
        ("checkpoints_by_removal", ["removal_time"]),
    ):
        op.create_index(name, "checkpoints", columns)


def downgrade() -> None:
    """Drops every table."""
    for table in ("audit", "files", "checkpoints", "trials", "experiments"):
        op.drop_table(table)
