"""The best validation of each trial, kept with every write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.queries.series import read_series
from resolute_metrics.queries.superseded import effective_mask, superseded_from
from resolute_metrics.store.rows import Floats, Integers, Piece
from resolute_metrics.store.schema import INTAKE, streams
from resolute_metrics.store.schema import bests as table

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
class _Candidate:
    rank: float
    """The value, or its negative where larger is better: the smallest rank wins, the earliest of equals."""
    run: int
    steps: int


def update(
    connection: Connection,
    *,
    trial_key: int,
    experiment_key: int,
    run: int,
    goal: Goal,
    pieces: Sequence[Piece],
) -> None:
    """Brings the best of a trial up to date after validations of one run were stored.

    Args:
        connection: Writes.
        trial_key: The trial.
        experiment_key: Its experiment.
        run: The run.
        goal: What the experiment decides by.
        pieces: What was stored, of any group.
    """
    pieces = [piece for piece in pieces if piece.group == GROUP]
    if not pieces:
        return
    known = connection.execute(sa.select(table).where(table.c.trial_key == trial_key)).one_or_none()
    if known is not None and (known.metric != goal.metric or _supersedes(run, pieces, known)):
        # A restart, at most once a run and group: the only time that stored values are looked at again.
        _save(connection, trial_key, experiment_key, goal, _search(connection, trial_key, goal))
        return
    found = _best_of_run(connection, trial_key, run, goal, pieces)
    if found is not None and (known is None or (found.rank, found.steps) < (known.rank, known.steps)):
        _save(connection, trial_key, experiment_key, goal, found)


def best_of_experiment(connection: Connection, experiment_id: str) -> Best | None:
    """The best of all trials; None before the first."""
    experiments, trials = INTAKE.experiments, INTAKE.trials
    row = connection.execute(
        _query()
        .join(experiments, experiments.c.experiment_key == table.c.experiment_key)
        .where(experiments.c.experiment_id == experiment_id, experiments.c.deleted_at.is_(None))
        .order_by(table.c.rank, trials.c.trial_key)
        .limit(1)
    ).one_or_none()
    return None if row is None else Best(*row)


def best_of_trials(connection: Connection, trial_ids: Sequence[str], *, experiment_id: str) -> list[Best]:
    """The best of each of those trials of an experiment that have one."""
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
        sa.select(trials.c.trial_id, table.c.value, table.c.steps, table.c.metric)
        .select_from(table)
        .join(trials, trials.c.trial_key == table.c.trial_key)
    )


def _supersedes(run: int, pieces: Sequence[Piece], known: sa.Row[Any]) -> bool:
    first = min(int(piece.rows.steps.min()) for piece in pieces)
    return run > int(known.run) and first <= int(known.steps)


def _best_of_run(
    connection: Connection, trial_key: int, run: int, goal: Goal, pieces: Sequence[Piece]
) -> _Candidate | None:
    with_metric = [piece for piece in pieces if goal.metric in piece.names]
    if not with_metric:
        return None
    rows = connection.execute(
        sa.select(streams.c.run, streams.c.first_step).where(
            streams.c.trial_key == trial_key, streams.c.group_name == GROUP, streams.c.run > run
        )
    )
    cut = superseded_from([(run, 0), *((row.run, row.first_step) for row in rows)]).get(run)
    found = []
    for piece in with_metric:
        mask = effective_mask(piece.rows.steps, cut)
        values = piece.rows.values[:, piece.names.index(goal.metric)]
        candidate = _smallest(_ranks(values[mask], goal), piece.rows.steps[mask])
        if candidate is not None:
            found.append(_Candidate(candidate[0], run, candidate[1]))
    return min(found, key=lambda candidate: (candidate.rank, candidate.steps), default=None)


def _search(connection: Connection, trial_key: int, goal: Goal) -> _Candidate | None:
    series = read_series(connection, trial_key, group=GROUP, name=goal.metric, superseded=False)
    candidate = _smallest(_ranks(series.values, goal), series.steps)
    if candidate is None:
        return None
    run = series.runs[np.flatnonzero(series.steps == candidate[1])[0]]
    return _Candidate(candidate[0], int(run), candidate[1])


def _ranks(values: Floats, goal: Goal) -> Floats:
    return values if goal.smaller_is_better else -values


def _smallest(ranks: Floats, steps: Integers) -> tuple[float, int] | None:
    finite = np.isfinite(ranks)
    if not finite.any():
        return None
    ranks, steps = ranks[finite], steps[finite]
    place = int(np.lexsort((steps, ranks))[0])
    return float(ranks[place]), int(steps[place])


def _save(
    connection: Connection, trial_key: int, experiment_key: int, goal: Goal, found: _Candidate | None
) -> None:
    connection.execute(table.delete().where(table.c.trial_key == trial_key))
    if found is None:
        return
    connection.execute(
        table.insert(),
        {
            "trial_key": trial_key,
            "experiment_key": experiment_key,
            "rank": found.rank,
            "value": found.rank if goal.smaller_is_better else -found.rank,
            "metric": goal.metric,
            "run": found.run,
            "steps": found.steps,
        },
    )
