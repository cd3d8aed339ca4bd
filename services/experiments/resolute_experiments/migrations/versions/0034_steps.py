"""The steps and the speed of trials, and the times at which experiments began to run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Adds the columns. What earlier trials reported is copied once the service runs."""
    for column in (
        sa.Column("reported_run", sa.Integer),
        sa.Column("reported_steps", sa.BigInteger),
        sa.Column("reported_at", sa.Float),
        sa.Column("steps_per_second", sa.Float),
        sa.Column("steps_due", sa.Boolean, nullable=False, server_default=sa.false()),
    ):
        op.add_column("trials", column)
    for name in ("started_at", "estimated_end_at"):
        op.add_column("experiments", sa.Column(name, sa.Float))
    trials = sa.table("trials", sa.column("run"), sa.column("steps_due"))
    op.execute(trials.update().where(trials.c.run > 0).values(steps_due=sa.true()))
    op.create_index("trials_by_steps_due", "trials", ["steps_due", "number"])
    runs = sa.table("runs", sa.column("experiment_id"), sa.column("started_at"))
    query = sa.select(runs.c.experiment_id, sa.func.min(runs.c.started_at)).group_by(runs.c.experiment_id)
    connection = op.get_bind()
    started = [{"experiment": key, "first": first} for key, first in connection.execute(query)]
    if started:
        experiments = sa.table("experiments", sa.column("id"), sa.column("started_at"))
        update = experiments.update().where(experiments.c.id == sa.bindparam("experiment"))
        connection.execute(update.values(started_at=sa.bindparam("first")), started)
