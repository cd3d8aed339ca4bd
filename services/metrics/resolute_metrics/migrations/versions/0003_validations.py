"""The last validation of each trial beside its best, and the order in which they changed."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LAST = 5
"""The row of a stream's aggregates that holds the last values."""


def upgrade() -> None:
    """Moves the best validations to the new table, with the last ones from the streams."""
    validations = op.create_table(
        "validations",
        sa.Column("trial_key", _KEY, primary_key=True, autoincrement=False),
        sa.Column("experiment_key", _KEY, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("best_rank", sa.Float),
        sa.Column("best_value", sa.Float),
        sa.Column("best_run", sa.Integer),
        sa.Column("best_steps", sa.BigInteger),
        sa.Column("last_value", sa.Float),
        sa.Column("last_run", sa.Integer, nullable=False),
        sa.Column("last_steps", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger),
    )
    connection = op.get_bind()
    for row in connection.execute(sa.text("SELECT * FROM bests ORDER BY trial_key")).all():
        last_run, last_steps, last_value = _last(connection, row)
        connection.execute(
            validations.insert(),
            {
                "trial_key": row.trial_key,
                "experiment_key": row.experiment_key,
                "metric": row.metric,
                "best_rank": row.rank,
                "best_value": row.value,
                "best_run": row.run,
                "best_steps": row.steps,
                "last_value": last_value if last_value is not None and math.isfinite(last_value) else None,
                "last_run": last_run,
                "last_steps": last_steps,
            },
        )
    op.create_index("validations_by_experiment", "validations", ["experiment_key", "best_rank"])
    op.create_index("validations_by_revision", "validations", ["revision"], unique=True)
    op.drop_table("bests")
    revisions = op.create_table(
        "validation_revisions",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("latest", sa.BigInteger, nullable=False),
    )
    connection.execute(revisions.insert(), {"id": 1, "latest": 0})


def _last(connection: sa.Connection, best: Any) -> tuple[int, int, float | None]:
    """Run, steps and value of the last validation: of the newest run that has the metric."""
    query = sa.text(
        "SELECT run, last_step, last_sequence, names, aggregates FROM streams "
        "WHERE trial_key = :trial AND group_name = 'validation'"
    )
    found = [
        (row.run, row.last_step, row.last_sequence, json.loads(row.names), bytes(row.aggregates))
        for row in connection.execute(query, {"trial": best.trial_key})
    ]
    with_metric = [one for one in found if best.metric in one[3]]
    if not with_metric:
        return best.run, best.steps, best.value
    run, steps, _, names, aggregates = max(with_metric, key=lambda one: one[:3])
    (value,) = struct.unpack_from("<d", aggregates, 8 * (_LAST * len(names) + names.index(best.metric)))
    return run, steps, value
