"""The tables of alerts."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_experiments.store.schema.metadata import metadata

alert_documents = sa.Table(
    "alert_documents",
    metadata,
    # Zero for that of the cluster.
    sa.Column("workspace_number", sa.BigInteger, primary_key=True, autoincrement=False),
    # The whole document with its secrets, encrypted.
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    # Its rules alone, which hold no secret; and the names of endpoints that only experiments name.
    sa.Column("rules", sa.JSON, nullable=False),
    sa.Column("only_named", sa.JSON, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
)

# What endpoints receive, once for each key; kept for a while after it was delivered.
alert_deliveries = sa.Table(
    "alert_deliveries",
    metadata,
    sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("key", sa.String(200), nullable=False),
    sa.Column("workspace_number", sa.BigInteger, nullable=False),
    sa.Column("endpoint", sa.String(256), nullable=False),
    sa.Column("alert", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    # When it is next sent; null once it was delivered or given up.
    sa.Column("due_at", sa.Float),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("delivered_at", sa.Float),
    sa.Column("problem", sa.Text, nullable=False, server_default=""),
    sa.UniqueConstraint("key", "workspace_number", "endpoint", name="alert_deliveries_once"),
    sa.Index("alert_deliveries_by_due", "due_at"),
    sa.Index("alert_deliveries_by_workspace", "workspace_number", "position"),
    sqlite_autoincrement=True,
)
