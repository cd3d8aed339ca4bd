"""The changes of best and last validations in one order, for services that copy them.

Writers on several replicas cannot number their changes: their order is that of their commits, and a reader
that has seen a later number would miss an earlier one. So a write only marks its row as changed, and a reader
numbers the changes before it lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.store.schema import INTAKE, validation_revisions
from resolute_metrics.store.schema import validations as table

NUMBERING_ORDER = "~"
"""Where numbering comes among the work of one commit, see ``Database.write``: after all ingestion.

It waits for no row that an ingesting replica holds, so it must hold none while others of its commit wait.
"""
_NUMBERED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class TrialValidations:
    """The best and the last validation of one trial."""

    trial_id: str
    experiment_id: str
    metric: str
    best_value: float | None
    best_steps: int | None
    last_value: float | None
    """None for NaN and infinities."""
    last_steps: int
    revision: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in the order of their revisions."""

    trials: Sequence[TrialValidations]
    latest_revision: int
    """The largest revision that was ever given."""


def newest(connection: Connection) -> int | None:
    """Returns the largest revision so far; None while a change has no revision yet."""
    unnumbered = sa.select(table.c.trial_key).where(table.c.revision.is_(None)).limit(1)
    if connection.execute(unnumbered).one_or_none() is not None:
        return None
    return int(connection.execute(sa.select(validation_revisions.c.latest)).scalar_one())


def number_changes(connection: Connection) -> None:
    """Assigns numbers to the changes without one; changes in open transactions get theirs later."""
    latest = connection.execute(sa.select(validation_revisions.c.latest).with_for_update()).scalar_one()
    keys = connection.execute(
        sa.select(table.c.trial_key)
        .where(table.c.revision.is_(None))
        .order_by(table.c.trial_key)
        .limit(_NUMBERED_AT_ONCE)
        .with_for_update(skip_locked=True)
    ).scalars()
    rows = [{"key": key, "number": place} for place, key in enumerate(keys, latest + 1)]
    if rows:
        own_row = table.c.trial_key == sa.bindparam("key")
        connection.execute(table.update().where(own_row).values(revision=sa.bindparam("number")), rows)
        connection.execute(validation_revisions.update().values(latest=latest + len(rows)))


def list_changes(connection: Connection, *, after: int, limit: int) -> Changes:
    """Reads the trials whose best or last validation changed after a revision, oldest change first."""
    experiments, trials = INTAKE.experiments, INTAKE.trials
    query = (
        sa.select(
            trials.c.trial_id,
            experiments.c.experiment_id,
            table.c.metric,
            table.c.best_value,
            table.c.best_steps,
            table.c.last_value,
            table.c.last_steps,
            table.c.revision,
        )
        .select_from(table)
        .join(trials, trials.c.trial_key == table.c.trial_key)
        .join(experiments, experiments.c.experiment_key == table.c.experiment_key)
        .where(table.c.revision > after)
        .order_by(table.c.revision)
        .limit(limit)
    )
    changes = [TrialValidations(*row) for row in connection.execute(query)]
    return Changes(changes, connection.execute(sa.select(validation_revisions.c.latest)).scalar_one())
