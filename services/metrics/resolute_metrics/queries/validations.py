"""The best and the last validation of each trial, updated by every write.

Both are values of the effective series: superseded values do not count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.queries.curves.series import read_series
from resolute_metrics.queries.superseded import effective_mask, superseded_from
from resolute_metrics.store.rows import Floats, Integers, Piece
from resolute_metrics.store.schema import INTAKE, streams
from resolute_metrics.store.schema import validations as table

GROUP = "validation"
"""The group whose values of the experiment's metric decide."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The metric that an experiment selects by."""

    metric: str
    smaller_is_better: bool


@dataclass(frozen=True, slots=True)
class Best:
    """The best effective value of a trial."""

    trial_id: str
    value: float
    steps: int
    metric: str


@dataclass(frozen=True, slots=True)
class _Best:
    rank: float
    """The value, or its negative where larger is better: the smallest rank wins, the earliest of equals."""
    run: int
    steps: int


@dataclass(frozen=True, slots=True)
class _Last:
    run: int
    steps: int
    value: float | None
    """None for NaN and infinities."""


@dataclass(frozen=True, slots=True)
class _BestAndLast:
    best: _Best | None
    """None without any finite value."""
    last: _Last


def update(
    connection: Connection,
    *,
    trial_key: int,
    experiment_key: int,
    run: int,
    goal: Goal,
    pieces: Sequence[Piece],
) -> None:
    """Updates the best and the last validation of a trial after reports of one run were stored.

    Args:
        connection: Writes.
        trial_key: The trial; the transaction holds its lock.
        experiment_key: Its experiment.
        run: The run.
        goal: What the experiment decides by.
        pieces: What was stored, of any group.
    """
    pieces = [piece for piece in pieces if piece.group == GROUP]
    if not pieces:
        return
    row = connection.execute(sa.select(table).where(table.c.trial_key == trial_key)).one_or_none()
    if row is not None and (row.metric != goal.metric or _supersedes(run, pieces, row)):
        # A restart, at most once a run and group: the only time that stored values are looked at again.
        best = _search(connection, trial_key, goal)
    else:
        best = _merge(_known(row), _of_run(connection, trial_key, run, goal, pieces))
    if best != _known(row):
        _save(connection, trial_key, experiment_key, goal, best)


def best_of_experiment(connection: Connection, experiment_id: str) -> Best | None:
    """Returns the best validation of all trials; None without one."""
    experiments, trials = INTAKE.experiments, INTAKE.trials
    row = connection.execute(
        _query()
        .join(experiments, experiments.c.experiment_key == table.c.experiment_key)
        .where(experiments.c.experiment_id == experiment_id, experiments.c.deleted_at.is_(None))
        .order_by(table.c.best_rank, trials.c.trial_key)
        .limit(1)
    ).one_or_none()
    return None if row is None else Best(*row)


def best_of_trials(connection: Connection, trial_ids: Sequence[str], *, experiment_id: str) -> list[Best]:
    """Returns the best validation of each trial of an experiment; trials without one are left out."""
    experiments, trials = INTAKE.experiments, INTAKE.trials
    rows = connection.execute(
        _query()
        .join(experiments, experiments.c.experiment_key == table.c.experiment_key)
        .where(
            experiments.c.experiment_id == experiment_id,
            experiments.c.deleted_at.is_(None),
            trials.c.trial_id.in_(trial_ids),
        )
        .order_by(trials.c.trial_key)
    )
    return [Best(*row) for row in rows]


def _query() -> sa.Select[Any]:
    trials = INTAKE.trials
    return (
        sa.select(trials.c.trial_id, table.c.best_value, table.c.best_steps, table.c.metric)
        .select_from(table)
        .join(trials, trials.c.trial_key == table.c.trial_key)
        .where(table.c.best_rank.is_not(None))
    )


def _supersedes(run: int, pieces: Sequence[Piece], row: sa.Row[Any]) -> bool:
    first = min(int(piece.rows.steps.min()) for piece in pieces)
    if run > row.last_run and first <= row.last_steps:
        return True
    return row.best_run is not None and run > row.best_run and first <= row.best_steps


def _known(row: sa.Row[Any] | None) -> _BestAndLast | None:
    if row is None:
        return None
    best = None if row.best_rank is None else _Best(row.best_rank, row.best_run, row.best_steps)
    return _BestAndLast(best, _Last(row.last_run, row.last_steps, _finite(row.last_value)))


def _merge(known: _BestAndLast | None, later: _BestAndLast | None) -> _BestAndLast | None:
    if known is None or later is None:
        return known or later
    bests = [best for best in (known.best, later.best) if best is not None]
    return _BestAndLast(
        min(bests, key=lambda best: (best.rank, best.steps), default=None),
        max(known.last, later.last, key=lambda last: (last.run, last.steps)),
    )


def _of_run(
    connection: Connection, trial_key: int, run: int, goal: Goal, pieces: Sequence[Piece]
) -> _BestAndLast | None:
    with_metric = [piece for piece in pieces if goal.metric in piece.names]
    if not with_metric:
        return None
    rows = connection.execute(
        sa.select(streams.c.run, streams.c.first_step).where(
            streams.c.trial_key == trial_key, streams.c.group_name == GROUP, streams.c.run > run
        )
    )
    cut = superseded_from([(run, 0), *((row.run, row.first_step) for row in rows)]).get(run)
    best: _BestAndLast | None = None
    for piece in with_metric:
        mask = effective_mask(piece.rows.steps, cut)
        steps = piece.rows.steps[mask]
        values = piece.rows.values[:, piece.names.index(goal.metric)][mask]
        best = _merge(best, _of_points(steps, values, np.full(len(steps), run), goal))
    return best


def _search(connection: Connection, trial_key: int, goal: Goal) -> _BestAndLast | None:
    series = read_series(connection, trial_key, group=GROUP, name=goal.metric, superseded=False)
    return _of_points(series.steps, series.values, series.runs, goal)


def _of_points(steps: Integers, values: Floats, runs: Integers, goal: Goal) -> _BestAndLast | None:
    """Returns the best and the last of some effective points."""
    if not len(steps):
        return None
    end = int(np.lexsort((steps, runs))[-1])
    last = _Last(int(runs[end]), int(steps[end]), _finite(float(values[end])))
    ranks = values if goal.smaller_is_better else -values
    finite = np.flatnonzero(np.isfinite(ranks))
    if not len(finite):
        return _BestAndLast(None, last)
    place = finite[int(np.lexsort((steps[finite], ranks[finite]))[0])]
    return _BestAndLast(_Best(float(ranks[place]), int(runs[place]), int(steps[place])), last)


def _finite(value: float | None) -> float | None:
    """The database has no NaN (SQLite stores NULL) and orders infinities: neither is kept as a last value."""
    return value if value is not None and math.isfinite(value) else None


def _save(
    connection: Connection, trial_key: int, experiment_key: int, goal: Goal, validation: _BestAndLast | None
) -> None:
    connection.execute(table.delete().where(table.c.trial_key == trial_key))
    if validation is None:
        return
    best, last = validation.best, validation.last
    connection.execute(
        table.insert(),
        {
            "trial_key": trial_key,
            "experiment_key": experiment_key,
            "metric": goal.metric,
            "best_rank": best and best.rank,
            "best_value": best and (best.rank if goal.smaller_is_better else -best.rank),
            "best_run": best and best.run,
            "best_steps": best and best.steps,
            "last_value": last.value,
            "last_run": last.run,
            "last_steps": last.steps,
            "revision": None,
        },
    )
