"""Tables of the metrics service.

A *stream* has the reports of one source with the same names in the same group. Its row holds aggregates, the
range of steps, and the last non-numeric values. Its rows of numbers are in *blocks*; the columns of tall
blocks are in rows of their own, so that a series reads only its column.
"""

from __future__ import annotations

import sqlalchemy as sa

from resolute.contracts.spool.format import MAX_NAME_LENGTH
from resolute_serving.ingestion.tables import KEY, IngestionTables

METADATA = sa.MetaData()
INTAKE = IngestionTables(METADATA)

streams = sa.Table(
    "streams",
    METADATA,
    sa.Column("stream_key", KEY, primary_key=True),
    sa.Column("trial_key", KEY, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("source_key", KEY, nullable=False),
    sa.Column("group_name", sa.String(MAX_NAME_LENGTH), nullable=False),
    sa.Column("names_digest", sa.String(32), nullable=False),
    sa.Column("names", sa.Text, nullable=False),
    sa.Column("first_step", sa.BigInteger, nullable=False),
    sa.Column("last_step", sa.BigInteger, nullable=False),
    sa.Column("last_sequence", sa.BigInteger, nullable=False),
    sa.Column("small_blocks", sa.Integer, nullable=False),
    sa.Column("aggregates", sa.LargeBinary, nullable=False),
    sa.Column("others", sa.Text, nullable=False),
    sa.Column("last_time", sa.Float, nullable=False, server_default="0"),
    sa.UniqueConstraint("trial_key", "run", "source_key", "group_name", "names_digest"),
)

blocks = sa.Table(
    "blocks",
    METADATA,
    sa.Column("block_key", KEY, primary_key=True),
    sa.Column("stream_key", KEY, nullable=False),
    sa.Column("row_count", sa.Integer, nullable=False),
    sa.Column("first_step", sa.BigInteger, nullable=False),
    sa.Column("last_step", sa.BigInteger, nullable=False),
    sa.Column("steps", sa.LargeBinary, nullable=False),
    sa.Column("sequences", sa.LargeBinary, nullable=False),
    sa.Column("extras", sa.Text),
    sa.Column("times", sa.LargeBinary, nullable=False),
    sa.Column("matrix", sa.LargeBinary),
    sa.Index("blocks_by_stream", "stream_key", "last_step"),
)

columns = sa.Table(
    "columns",
    METADATA,
    sa.Column("block_key", KEY, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

validations = sa.Table(
    "validations",
    METADATA,
    sa.Column("trial_key", KEY, primary_key=True, autoincrement=False),
    sa.Column("experiment_key", KEY, nullable=False),
    sa.Column("metric", sa.Text, nullable=False),
    # The best finite value: the smallest rank. NULL before the first.
    sa.Column("best_rank", sa.Float),
    sa.Column("best_value", sa.Float),
    sa.Column("best_run", sa.Integer),
    sa.Column("best_steps", sa.BigInteger),
    # The last value; NULL when it was NaN or infinite.
    sa.Column("last_value", sa.Float),
    sa.Column("last_run", sa.Integer, nullable=False),
    sa.Column("last_steps", sa.BigInteger, nullable=False),
    # Its place among the changes of all trials; NULL until the change was given one.
    sa.Column("revision", sa.BigInteger),
    sa.Index("validations_by_experiment", "experiment_key", "best_rank"),
    sa.Index("validations_by_revision", "revision", unique=True),
)

validation_revisions = sa.Table(
    "validation_revisions",
    METADATA,
    # One row.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("latest", sa.BigInteger, nullable=False),
)

refusals = sa.Table(
    "refusals",
    METADATA,
    sa.Column("source_key", KEY, primary_key=True, autoincrement=False),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("message", sa.Text, nullable=False),
)
