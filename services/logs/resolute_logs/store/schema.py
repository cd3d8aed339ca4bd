"""Tables of the logs service. The key of a line is its position in the order of arrival."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_serving.ingestion.tables import KEY, IngestionTables

METADATA = sa.MetaData()
INTAKE = IngestionTables(METADATA)

LINE_BYTES = 100
"""About how many bytes a line takes beside its text."""

lines = sa.Table(
    "lines",
    METADATA,
    sa.Column("line_id", KEY, primary_key=True),
    sa.Column("trial_key", KEY, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("time_ns", sa.BigInteger, nullable=False),
    sa.Column("level", sa.SmallInteger, nullable=False),
    sa.Column("rank", sa.Integer),
    sa.Column("stdtype", sa.String(10), nullable=False),
    sa.Column("origin", sa.String(200), nullable=False),
    sa.Column("container", sa.String(200), nullable=False),
    sa.Column("agent", sa.String(200), nullable=False, server_default=""),
    sa.Column("message", sa.Text, nullable=False),
    sa.Index("lines_by_trial", "trial_key", "line_id"),
    # A key that was deleted must not come again: followers would miss its new line.
    sqlite_autoincrement=True,
)

closures = sa.Table("closures", METADATA, sa.Column("trial_id", sa.String(36), primary_key=True))
"""Trials whose logs are complete; also of trials that never wrote a line."""
