"""The last steps that trials have reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.store.schema import INTAKE, streams

GROUPS = ("training", "validation")
"""What counts steps of training; steps of other groups are the script's own."""


@dataclass(frozen=True, slots=True)
class LastSteps:
    """The last steps of one trial."""

    trial_id: str
    run: int
    """Its newest run that has reported."""
    steps: int
    """The most steps of that run's reports."""
    time: float
    """Unix time of that run's newest report."""


def last_steps(connection: Connection, trial_ids: Sequence[str]) -> list[LastSteps]:
    """Reads the last reported step of each trial. Trials without reports are left out."""
    keys = INTAKE.find_trials(connection, list(trial_ids))
    names = {key: trial_id for trial_id, key in keys.items()}
    runs = connection.execute(
        sa.select(
            streams.c.trial_key,
            streams.c.run,
            sa.func.max(streams.c.last_step),
            sa.func.max(streams.c.last_time),
        )
        .where(streams.c.trial_key.in_(list(names)), streams.c.group_name.in_(GROUPS))
        .group_by(streams.c.trial_key, streams.c.run)
        .order_by(streams.c.run)
    )
    newest = {key: LastSteps(names[key], run, steps, time) for key, run, steps, time in runs}
    return list(newest.values())
