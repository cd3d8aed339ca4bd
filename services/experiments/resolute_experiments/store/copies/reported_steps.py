"""The copy of the last steps that trials have reported to the metrics service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.states import ALLOCATED_TRIALS, TrialState
from resolute_experiments.store import experiments
from resolute_experiments.store.schema import experiments as experiments_table
from resolute_experiments.store.schema import trials


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSteps:
    """The last steps of a trial's training and validation reports."""

    run: int
    """Its newest run that has reported."""
    steps: int
    time: float
    """Unix time of that run's first report at these steps, as far as it was looked at."""
    steps_per_second: float | None
    """None before the second report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTrial:
    """A trial whose steps are due to be fetched."""

    number: int
    trial_id: str
    experiment_id: str
    run: int
    runs: bool
    """Whether it has processes; if not, one more look is the last one until its next run."""
    reported: ReportedSteps | None


_IMPORTING = sa.exists().where(
    experiments_table.c.id == trials.c.experiment_id, experiments_table.c.importing.is_(True)
)
"""The reports of an experiment that is being imported may come after its trials."""
_COLUMNS = (
    "number",
    "id",
    "experiment_id",
    "run",
    "state",
    "reported_run",
    "reported_steps",
    "reported_at",
    "steps_per_second",
)
_DUE = (
    sa.select(*(trials.c[name] for name in _COLUMNS))
    .where(trials.c.steps_due.is_(True), trials.c.number > sa.bindparam("after"), ~_IMPORTING)
    .order_by(trials.c.number)
    .limit(sa.bindparam("limit"))
)
_LOOK_AGAIN = (
    trials.update()
    .where(trials.c.experiment_id == sa.bindparam("experiment"), trials.c.run > 0)
    .values(steps_due=True)
)
_UPDATE = (
    trials.update()
    .where(trials.c.id == sa.bindparam("trial"), trials.c.run == sa.bindparam("of_run"))
    .values(
        reported_run=sa.bindparam("by_run"),
        reported_steps=sa.bindparam("steps"),
        reported_at=sa.bindparam("time"),
        steps_per_second=sa.bindparam("rate"),
        steps_due=sa.bindparam("due"),
        revision=sa.bindparam("changed"),
    )
)


def due(connection: Connection, *, after: int, limit: int) -> list[DueTrial]:
    """Reads trials whose steps are to be asked for, by number.

    Args:
        connection: Where from.
        after: Only larger numbers.
        limit: Most trials.
    """
    return [_due(row) for row in connection.execute(_DUE, {"after": after, "limit": limit})]


def look_again(connection: Connection, experiment_id: str) -> None:
    """Has the steps of all trials of an experiment asked for once more: reports may have arrived late."""
    connection.execute(_LOOK_AGAIN, {"experiment": experiment_id})


def store(connection: Connection, changes: Sequence[tuple[DueTrial, ReportedSteps | None]]) -> None:
    """Writes what trials have reported; of those that have begun another run since they were read nothing.

    Args:
        connection: A transaction.
        changes: Trials, and what they have reported; None for nothing yet.
    """
    revisions = experiments.touch_all(connection, {trial.experiment_id for trial, _ in changes})
    rows = [
        {
            "trial": trial.trial_id,
            "of_run": trial.run,
            "by_run": reported and reported.run,
            "steps": reported and reported.steps,
            "time": reported and reported.time,
            "rate": reported and reported.steps_per_second,
            "due": trial.runs,
            "changed": revisions[trial.experiment_id],
        }
        for trial, reported in changes
    ]
    connection.execute(_UPDATE, rows)


def _due(row: sa.Row[Any]) -> DueTrial:
    return DueTrial(
        number=row.number,
        trial_id=row.id,
        experiment_id=row.experiment_id,
        run=row.run,
        runs=TrialState(row.state) in ALLOCATED_TRIALS,
        reported=None
        if row.reported_run is None
        else ReportedSteps(
            run=row.reported_run,
            steps=row.reported_steps,
            time=row.reported_at,
            steps_per_second=row.steps_per_second,
        ),
    )
