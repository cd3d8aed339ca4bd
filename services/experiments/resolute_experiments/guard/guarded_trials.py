"""Trials with a guard, and the position up to which their reports were judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.states import ALLOCATED_TRIALS
from resolute_experiments.store.schema import experiments, runs, trials


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedTrial:
    """A running trial with a guard."""

    trial_id: str
    experiment_id: str
    run: int
    allocation_id: str
    guarded_steps: int
    """Up to here its reports were judged."""
    guard: Mapping[str, Any]
    """The section of its config."""


_GUARDED = (
    sa.select(
        trials.c.id.label("trial_id"),
        trials.c.experiment_id,
        trials.c.run,
        trials.c.guarded_steps,
        runs.c.allocation_id,
        experiments.c.config["guard"].label("guard"),
    )
    .join(runs, sa.and_(runs.c.trial_id == trials.c.id, runs.c.run == trials.c.run))
    .join(experiments, experiments.c.id == trials.c.experiment_id)
    .where(
        trials.c.state.in_([state.value for state in ALLOCATED_TRIALS]),
        trials.c.guarded_steps.is_not(None),
        # It is about to go back.
        runs.c.good_steps.is_(None),
    )
)
_REPORTED = _GUARDED.where(
    trials.c.reported_run == trials.c.run, trials.c.reported_steps > trials.c.guarded_steps
)
_OF_TRIAL = _GUARDED.where(trials.c.id == sa.bindparam("trial"))


def reported(connection: Connection) -> list[GuardedTrial]:
    """Reads the guarded trials that have reported since they were judged."""
    return [GuardedTrial(**row) for row in connection.execute(_REPORTED).mappings()]


def of_trial(connection: Connection, trial_id: str) -> GuardedTrial | None:
    """Reads one trial; None if it has no guard, or is about to go back."""
    row = connection.execute(_OF_TRIAL, {"trial": trial_id}).mappings().one_or_none()
    return None if row is None else GuardedTrial(**row)


def good_steps_of_runs(connection: Connection, trial_id: str) -> dict[int, int]:
    """The runs of a trial that its guard ended, each with the steps until which its reports were good."""
    query = sa.select(runs.c.run, runs.c.good_steps)
    rows = connection.execute(query.where(runs.c.trial_id == trial_id, runs.c.good_steps.is_not(None)))
    return {row.run: row.good_steps for row in rows}


def good_steps(connection: Connection, experiment_id: str) -> dict[str, int]:
    """The trials of an experiment that may go back, each with the steps until which its reports are good."""
    query = sa.select(trials.c.id, trials.c.guarded_steps)
    rows = connection.execute(
        query.where(trials.c.experiment_id == experiment_id, trials.c.guarded_steps.is_not(None))
    )
    return {row.id: row.guarded_steps for row in rows}


def store_steps(connection: Connection, trial_id: str, steps: int) -> None:
    """Writes how far the reports of a trial were judged."""
    connection.execute(sa.update(trials).where(trials.c.id == trial_id).values(guarded_steps=steps))
