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
    _make_storage()
    op.create_table(
        "bests",
        sa.Column("trial_key", _KEY, primary_key=True, autoincrement=False),
        sa.Column("experiment_key", _KEY, nullable=False),
        sa.Column("rank", sa.Float, nullable=False),
        sa.Column("value", sa.Float, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("steps", sa.BigInteger, nullable=False),
    )
    op.create_index("bests_by_experiment", "bests", ["experiment_key", "rank"])
    op.create_table(
        "refusals",
        sa.Column("source_key", _KEY, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("message", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Removes every table."""
    for name in ("refusals", "bests", "columns", "blocks", "streams", "sources", "trials", "experiments"):
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


def _make_storage() -> None:
    op.create_table(
        "streams",
        sa.Column("stream_key", _KEY, primary_key=True),
        sa.Column("trial_key", _KEY, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("source_key", _KEY, nullable=False),
        sa.Column("group_name", sa.String(500), nullable=False),
        sa.Column("names_digest", sa.String(32), nullable=False),
        sa.Column("names", sa.Text, nullable=False),
        sa.Column("first_step", sa.BigInteger, nullable=False),
        sa.Column("last_step", sa.BigInteger, nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
        sa.Column("small_blocks", sa.Integer, nullable=False),
        sa.Column("aggregates", sa.LargeBinary, nullable=False),
        sa.Column("others", sa.Text, nullable=False),
        sa.UniqueConstraint("trial_key", "run", "source_key", "group_name", "names_digest"),
    )
    op.create_table(
        "blocks",
        sa.Column("block_key", _KEY, primary_key=True),
        sa.Column("stream_key", _KEY, nullable=False),
        sa.Column("row_count", sa.Integer, nullable=False),
        sa.Column("first_step", sa.BigInteger, nullable=False),
        sa.Column("last_step", sa.BigInteger, nullable=False),
        sa.Column("steps", sa.LargeBinary, nullable=False),
        sa.Column("sequences", sa.LargeBinary, nullable=False),
        sa.Column("extras", sa.Text),
        sa.Column("times", sa.LargeBinary, nullable=False),
        sa.Column("matrix", sa.LargeBinary),
    )
    op.create_index("blocks_by_stream", "blocks", ["stream_key", "last_step"])
    op.create_table(
        "columns",
        sa.Column("block_key", _KEY, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    if op.get_bind().dialect.name == "postgresql":
        # Doubles hardly compress; trying costs more than writing them.
        for table, column in (("blocks", "times"), ("blocks", "matrix"), ("columns", "data")):
            op.execute(f'ALTER TABLE "{table}" ALTER COLUMN "{column}" SET STORAGE EXTERNAL')
