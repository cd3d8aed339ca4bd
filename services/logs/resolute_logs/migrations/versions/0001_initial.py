"""The first schema.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes every table."""
    _make_intake()
    op.create_table(
        "lines",
        sa.Column("line_id", _KEY, primary_key=True),
        sa.Column("trial_key", _KEY, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("time_ns", sa.BigInteger, nullable=False),
        sa.Column("level", sa.SmallInteger, nullable=False),
        sa.Column("rank", sa.Integer),
        sa.Column("stdtype", sa.String(10), nullable=False),
        sa.Column("origin", sa.String(200), nullable=False),
        sa.Column("container", sa.String(200), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("lines_by_trial", "lines", ["trial_key", "line_id"])
    op.create_table("closures", sa.Column("trial_id", sa.String(36), primary_key=True))


def downgrade() -> None:
    """Removes every table."""
    for name in ("closures", "lines", "sources", "trials", "experiments"):
        op.drop_table(name)


def _make_intake() -> None:
    op.create_table(
        "experiments",
        sa.Column("experiment_key", _KEY, primary_key=True),
        sa.Column("experiment_id", sa.String(36), nullable=False, unique=True),
        sa.Column("deleted_at", sa.Float),
    )
    op.create_table(
        "trials",
        sa.Column("trial_key", _KEY, primary_key=True),
        sa.Column("trial_id", sa.String(36), nullable=False, unique=True),
        sa.Column("experiment_key", _KEY, nullable=False),
    )
    op.create_index("ix_trials_experiment_key", "trials", ["experiment_key"])
    op.create_table(
        "sources",
        sa.Column("source_key", _KEY, primary_key=True),
        sa.Column("trial_key", _KEY, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("next_sequence", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("trial_key", "run", "source"),
    )
