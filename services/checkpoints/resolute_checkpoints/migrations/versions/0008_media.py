"""Media: what trials log beside metrics.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "media_experiments",
        sa.Column("experiment_key", _KEY, primary_key=True),
        sa.Column("experiment_id", sa.String(36), nullable=False, unique=True),
        sa.Column("deleted_at", sa.Float),
    )
    op.create_table(
        "media_trials",
        sa.Column("trial_key", _KEY, primary_key=True),
        sa.Column("trial_id", sa.String(36), nullable=False, unique=True),
        sa.Column("experiment_key", _KEY, nullable=False, index=True),
        sa.Column("workspace", sa.BigInteger, nullable=False, server_default="0", index=True),
        sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("dropped", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("dropped_bytes", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("told", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("byte_limit", sa.Text, nullable=False, server_default=""),
    )
    op.create_table(
        "media_sources",
        sa.Column("source_key", _KEY, primary_key=True),
        sa.Column("trial_key", _KEY, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("next_sequence", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("trial_key", "run", "source"),
    )
    op.create_table(
        "media_places",
        sa.Column("place_key", _KEY, primary_key=True),
        sa.Column("experiment_key", _KEY, nullable=False),
        sa.Column("storage", sa.Text, nullable=False),
        sa.Column("inherited", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_index("media_places_by_experiment", "media_places", ["experiment_key"])
    op.create_table(
        "media",
        sa.Column("media_id", _KEY, primary_key=True),
        sa.Column("experiment_key", _KEY, nullable=False),
        sa.Column("trial_key", _KEY, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("name", sa.String(500), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("steps", sa.BigInteger, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("caption", sa.Text, nullable=False),
        sa.Column("content_type", sa.String(40), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("place_key", _KEY),
        sqlite_autoincrement=True,
    )
    op.create_index("media_by_steps", "media", ["trial_key", "steps", "media_id"])
    op.create_index("media_by_name", "media", ["trial_key", "name", "kind", "steps", "media_id"])
    op.create_index("media_by_digest", "media", ["experiment_key", "digest"])


def downgrade() -> None:
    """Drops them; the files stay in their storages."""
    for table in ("media", "media_places", "media_sources", "media_trials", "media_experiments"):
        op.drop_table(table)
