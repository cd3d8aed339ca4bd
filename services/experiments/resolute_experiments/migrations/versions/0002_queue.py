"""Columns for data that the scheduler reads of every experiment at each pass; excluded nodes of trials."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the columns, fills them from the configs, and orders the queue by an index."""
    op.add_column("experiments", sa.Column("slots_per_trial", sa.Integer, nullable=False, server_default="1"))
    op.add_column("experiments", sa.Column("single_node", sa.Boolean))
    op.add_column("experiments", sa.Column("max_slots", sa.Integer))
    op.add_column("experiments", sa.Column("priority", sa.Integer, nullable=False, server_default="42"))
    op.add_column("experiments", sa.Column("weight", sa.Float, nullable=False, server_default="1"))
    op.add_column("trials", sa.Column("excluded_nodes", sa.JSON, nullable=False, server_default="[]"))
    op.drop_index("trials_by_state", "trials")
    op.create_index("trials_in_queue", "trials", ["state", "experiment_id", "queued_at", "number"])
    _fill()


def _fill() -> None:
    experiments = sa.table(
        "experiments",
        sa.column("id", sa.String),
        sa.column("config", sa.JSON),
        sa.column("slots_per_trial", sa.Integer),
        sa.column("single_node", sa.Boolean),
        sa.column("max_slots", sa.Integer),
        sa.column("priority", sa.Integer),
        sa.column("weight", sa.Float),
    )
    connection = op.get_bind()
    for row in connection.execute(sa.select(experiments.c.id, experiments.c.config)).all():
        resources = row.config["resources"]
        connection.execute(
            sa.update(experiments)
            .where(experiments.c.id == row.id)
            .values(
                slots_per_trial=resources["slots_per_trial"],
                single_node=resources.get("is_single_node"),
                max_slots=resources.get("max_slots"),
                priority=resources.get("priority") or 42,
                weight=resources.get("weight") or 1.0,
            )
        )
