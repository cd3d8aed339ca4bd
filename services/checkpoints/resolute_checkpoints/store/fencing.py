"""Fencing: which runs of a trial may write, and which experiments are deleted.

Each trial and experiment has a row that writers lock, so that on PostgreSQL a commit and the fence that
excludes it cannot overlap.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError, RunSupersededError
from resolute_checkpoints.store.schema import experiments, trials
from resolute_serving.database.engine import insert_new


def require_run(connection: Connection, trial_id: str, run: int, *, lock: bool) -> None:
    """Checks that a run is not superseded.

    Args:
        connection: The caller's transaction.
        trial_id: The trial; empty for checkpoints of none, which nothing supersedes.
        run: The run.
        lock: Whether no fence may come between this check and the end of the transaction.

    Raises:
        RunSupersededError: A later run has taken over.
    """
    if not trial_id:
        return
    if lock:
        insert_new(connection, trials, {"trial_id": trial_id, "min_run": 0})
    query = sa.select(trials.c.min_run).where(trials.c.trial_id == trial_id)
    min_run = connection.execute(query.with_for_update(read=True) if lock else query).scalar() or 0
    if run < min_run:
        raise RunSupersededError(
            f"run {run} of trial {trial_id} is over: runs below {min_run} may not write checkpoints any "
            "more; exit, and let the current run go on",
            resource=f"trial {trial_id}",
            metadata={"run": str(run), "min_run": str(min_run)},
        )


def fence(connection: Connection, trial_id: str, min_run: int) -> int:
    """Supersedes a trial's runs below ``min_run``; returns the smallest run that is not superseded."""
    insert_new(connection, trials, {"trial_id": trial_id, "min_run": min_run})
    key = trials.c.trial_id == trial_id
    known: int = connection.execute(sa.select(trials.c.min_run).where(key).with_for_update()).scalar_one()
    if known < min_run:
        connection.execute(sa.update(trials).where(key).values(min_run=min_run))
    return max(known, min_run)


def require_experiment(connection: Connection, experiment_id: str, *, lock: bool) -> None:
    """Checks that an experiment was not deleted.

    Args:
        connection: The caller's transaction.
        experiment_id: The experiment; empty for checkpoints of none.
        lock: Whether no deletion may come between this check and the end of the transaction.

    Raises:
        NotFoundError: It was deleted.
    """
    if not experiment_id:
        return
    if lock:
        insert_new(connection, experiments, {"experiment_id": experiment_id})
    query = sa.select(experiments.c.delete_time).where(experiments.c.experiment_id == experiment_id)
    deleted = connection.execute(query.with_for_update(read=True) if lock else query).scalar()
    if deleted is not None:
        raise NotFoundError(
            f"experiment {experiment_id} was deleted; nothing can be stored for it any more",
            resource=f"experiment {experiment_id}",
        )


def lock_experiments(connection: Connection, ids: Collection[str]) -> None:
    """Locks experiments: no other transaction commits, holds or removes their files.

    Two that remove the last files with the same bytes must not both leave them to the other.
    """
    wanted = experiments.c.experiment_id.in_(sorted(ids))
    query = sa.select(experiments.c.experiment_id).where(wanted).order_by(experiments.c.experiment_id)
    connection.execute(query.with_for_update()).all()


def mark_experiment_deleted(connection: Connection, experiment_id: str, *, now: float) -> None:
    """Marks an experiment as deleted for good; the time of the first call stays."""
    insert_new(connection, experiments, {"experiment_id": experiment_id})
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.experiment_id == experiment_id, experiments.c.delete_time.is_(None))
        .values(delete_time=now)
    )


def is_experiment_deleted(connection: Connection, experiment_id: str) -> bool:
    """Returns whether an experiment was deleted."""
    query = sa.select(experiments.c.delete_time).where(experiments.c.experiment_id == experiment_id)
    return connection.execute(query).scalar() is not None
