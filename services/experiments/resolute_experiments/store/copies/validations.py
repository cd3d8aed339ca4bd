"""The copy of trials' best and last validations from the metrics service."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store import experiments
from resolute_experiments.store.schema import experiments as experiments_table
from resolute_experiments.store.schema import trials, validation_cursor


@dataclass(frozen=True, kw_only=True)
class TrialValidations:
    """The best and the last validation of one trial."""

    trial_id: str
    experiment_id: str
    best_value: float | None
    best_steps: int | None
    last_value: float | None
    last_steps: int


_UPDATE = (
    trials.update()
    .where(trials.c.id == sa.bindparam("trial"))
    .values(
        best_value=sa.bindparam("best"),
        best_steps=sa.bindparam("best_at"),
        last_value=sa.bindparam("last"),
        last_steps=sa.bindparam("last_at"),
        revision=sa.bindparam("changed"),
    )
)


def cursor(connection: Connection) -> int:
    """The revision up to which the copy has been made."""
    return int(connection.execute(sa.select(validation_cursor.c.revision)).scalar_one())


def store(connection: Connection, changes: Collection[TrialValidations], *, revision: int) -> None:
    """Writes changes, and that the copy has been made up to a revision.

    Args:
        connection: Writes.
        changes: The changes; those of trials that are not known here are dropped.
        revision: The revision.
    """
    revisions = experiments.touch_all(connection, {change.experiment_id for change in changes})
    rows = [
        {
            "trial": changed.trial_id,
            "best": changed.best_value,
            "best_at": changed.best_steps,
            "last": changed.last_value,
            "last_at": changed.last_steps,
            "changed": revisions[changed.experiment_id],
        }
        for changed in changes
        if changed.experiment_id in revisions
    ]
    if rows:
        connection.execute(_UPDATE, rows)
        for experiment_id in sorted(revisions):
            _keep_best(connection, experiment_id)
    connection.execute(validation_cursor.update().values(revision=revision))


def _keep_best(connection: Connection, experiment_id: str) -> None:
    """Writes the best validation of an experiment beside it: lists are ordered and filtered by it."""
    columns = experiments_table.c
    known = connection.execute(
        sa.select(
            columns.smaller_is_better, columns.best_value, columns.best_steps, columns.best_trial
        ).where(columns.id == experiment_id)
    ).one()
    of_experiment = trials.c.experiment_id == experiment_id
    extreme = sa.func.min if known.smaller_is_better else sa.func.max
    # Of equal ones the first trial, as everywhere. Either query reads one end of the index.
    best_value = sa.select(extreme(trials.c.best_value)).where(of_experiment).scalar_subquery()
    best = connection.execute(
        sa.select(trials.c.best_value, trials.c.best_steps, trials.c.number)
        .where(of_experiment, trials.c.best_value == best_value)
        .order_by(trials.c.number)
        .limit(1)
    ).one_or_none()
    value, steps, number = (None, None, None) if best is None else best
    if (value, steps, number) != known[1:]:
        experiments.update(connection, experiment_id, best_value=value, best_steps=steps, best_trial=number)
