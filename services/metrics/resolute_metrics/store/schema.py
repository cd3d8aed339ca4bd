"""Tables of the metrics service.

A *stream* is what one source reports with the same names in the same group. Its row holds what is known
without looking further: aggregates, the range of steps, the last values that were no numbers. Its rows of
numbers lie in *blocks*; the columns of tall blocks lie in rows of their own, so that a series reads one
column and no other.
"""

from __future__ import annotations

import sqlalchemy as sa

from resolute_metrics.limits import MAX_NAME_LENGTH
from resolute_serving.ingestion import KEY, IngestionTables

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

bests = sa.Table(
    "bests",
    METADATA,
    sa.Column("trial_key", KEY, primary_key=True, autoincrement=False),
    sa.Column("experiment_key", KEY, nullable=False),
    sa.Column("rank", sa.Float, nullable=False),
    sa.Column("value", sa.Float, nullable=False),
    sa.Column("metric", sa.Text, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("steps", sa.BigInteger, nullable=False),
    sa.Index("bests_by_experiment", "experiment_key", "rank"),
)

refusals = sa.Table(
    "refusals",
    METADATA,
    sa.Column("source_key", KEY, primary_key=True, autoincrement=False),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("message", sa.Text, nullable=False),
)
