"""Retention's data about checkpoints: values of the searcher's metric, readers, and reasons for keeping."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_checkpoints.domain.checkpoint import READABLE, Candidate, State
from resolute_checkpoints.store import pins
from resolute_checkpoints.store.rows import batches
from resolute_checkpoints.store.schema import checkpoints

_IS_READABLE = checkpoints.c.state.in_([state.value for state in READABLE])


def unranked_trials(connection: Connection) -> list[tuple[str, str]]:
    """Returns trials, with their experiments, that have checkpoints which retention has not seen."""
    query = sa.select(checkpoints.c.trial_id, checkpoints.c.experiment_id)
    # One that somebody deletes first is no candidate, and would be looked at for ever.
    query = query.where(checkpoints.c.unranked, _IS_READABLE)
    return [(trial_id, experiment_id) for trial_id, experiment_id in connection.execute(query.distinct())]


def candidates(
    connection: Connection, experiment_id: str, *, now: float, lock: bool = False
) -> list[Candidate]:
    """Returns the committed checkpoints of an experiment's trials, as candidates of retention.

    Args:
        connection: The caller's transaction.
        experiment_id: The experiment.
        now: What the time is.
        lock: Whether their rows stay as they are until the transaction ends.
    """
    columns = checkpoints.c
    query = (
        sa.select(
            columns.checkpoint_id,
            columns.trial_id,
            columns.steps_completed,
            columns.metric,
            columns.metric_time,
            columns.commit_time,
            columns.state,
            columns.ranked,
            columns.held_until,
            columns.left_behind,
            sa.or_(pins.is_kept(), columns.inherited).label("kept"),
        )
        .where(columns.experiment_id == experiment_id, columns.trial_id != "", _IS_READABLE)
        .order_by(columns.checkpoint_id)
    )
    return [
        Candidate(
            checkpoint_id=row.checkpoint_id,
            trial_id=row.trial_id,
            steps_completed=row.steps_completed,
            metric=row.metric,
            validation_order=row.metric_time or 0.0,
            commit_time=row.commit_time or 0.0,
            complete=row.state == State.COMPLETED.value,
            left_behind=bool(row.left_behind),
            ranked=bool(row.ranked),
            held=row.held_until > now,
            kept=bool(row.kept),
        )
        for row in connection.execute(query.with_for_update(of=checkpoints) if lock else query)
    ]


def rank(connection: Connection, ranked: Iterable[Candidate]) -> None:
    """Stores the ranks of checkpoints."""
    for candidate in ranked:
        connection.execute(
            sa.update(checkpoints)
            .where(checkpoints.c.checkpoint_id == candidate.checkpoint_id)
            .values(
                unranked=False,
                ranked=True,
                metric=candidate.metric,
                metric_time=candidate.validation_order,
            )
        )


def explain(connection: Connection, reasons: Mapping[str, Collection[str]]) -> None:
    """Stores why checkpoints are kept."""
    for batch in batches(sorted(reasons)):
        known = sa.select(checkpoints.c.checkpoint_id, checkpoints.c.keep_reasons)
        for row in connection.execute(known.where(checkpoints.c.checkpoint_id.in_(batch))).all():
            text = ",".join(sorted(reasons[row.checkpoint_id]))
            if text != row.keep_reasons:
                key = checkpoints.c.checkpoint_id == row.checkpoint_id
                connection.execute(
                    sa.update(checkpoints)
                    .where(key)
                    .values(keep_reasons=text, revision=checkpoints.c.revision + 1)
                )


def is_held(connection: Connection, checkpoint_id: str, *, until: float) -> bool:
    """Returns whether policies keep a checkpoint at least until a time."""
    query = sa.select(checkpoints.c.held_until).where(checkpoints.c.checkpoint_id == checkpoint_id)
    return float(connection.execute(query).scalar_one()) >= until


def hold(connection: Connection, checkpoint_id: str, *, until: float) -> None:
    """Protects a checkpoint from policies for a time; a longer hold is not shortened."""
    connection.execute(
        sa.update(checkpoints)
        .where(checkpoints.c.checkpoint_id == checkpoint_id, checkpoints.c.held_until < until)
        .values(held_until=until)
    )
