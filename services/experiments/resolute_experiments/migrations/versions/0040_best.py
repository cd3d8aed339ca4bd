"""The best validation of each experiment, in the row of the experiment.

Revision ID: 0040
Revises: 0039
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"

_EXPERIMENTS = sa.table(
    "experiments",
    *map(sa.column, ("id", "metric", "smaller_is_better", "best_value", "best_steps", "best_trial")),
    sa.column("config", sa.JSON),
)
_TRIALS = sa.table("trials", *map(sa.column, ("experiment_id", "number", "best_value", "best_steps")))


def upgrade() -> None:
    """Adds the columns, and fills them from configs and trials."""
    for column in (
        sa.Column("metric", sa.Text, nullable=False, server_default=""),
        sa.Column("smaller_is_better", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("best_value", sa.Float),
        sa.Column("best_steps", sa.BigInteger),
        sa.Column("best_trial", sa.BigInteger),
    ):
        op.add_column("experiments", column)
    op.create_index("trials_by_best", "trials", ["experiment_id", "best_value", "number"])
    connection = op.get_bind()
    ids = connection.execute(sa.select(_EXPERIMENTS.c.id)).scalars().all()
    for experiment_id in ids:
        _fill(connection, experiment_id)


def _fill(connection: sa.Connection, experiment_id: str) -> None:
    query = sa.select(_EXPERIMENTS.c.config).where(_EXPERIMENTS.c.id == experiment_id)
    config = connection.execute(query).scalar_one()
    searcher = _map(_map(json.loads(config) if isinstance(config, str) else config).get("searcher"))
    smaller = bool(searcher.get("smaller_is_better", True))
    order = _TRIALS.c.best_value if smaller else _TRIALS.c.best_value.desc()
    best = connection.execute(
        sa.select(_TRIALS.c.best_value, _TRIALS.c.best_steps, _TRIALS.c.number)
        .where(_TRIALS.c.experiment_id == experiment_id, _TRIALS.c.best_value.is_not(None))
        .order_by(order, _TRIALS.c.number)
        .limit(1)
    ).one_or_none()
    value, steps, number = (None, None, None) if best is None else best
    connection.execute(
        _EXPERIMENTS.update()
        .where(_EXPERIMENTS.c.id == experiment_id)
        .values(
            metric=str(searcher.get("metric") or ""),
            smaller_is_better=sa.true() if smaller else sa.false(),
            best_value=value,
            best_steps=steps,
            best_trial=number,
        )
    )


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
