"""The queue for users: live experiments in the order in which the scheduler serves them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import IllegalTransitionError, InvalidArgumentError, Violation
from resolute_experiments.scheduling.policy import Share
from resolute_experiments.states import ALLOCATED_TRIALS, LIVE_EXPERIMENTS, ExperimentState, TrialState
from resolute_experiments.store import audit, experiments, runs, trials
from resolute_experiments.store.experiments import Experiment, ExperimentKind
from resolute_experiments.store.schema import experiments as experiments_table
from resolute_experiments.store.schema import trials as trials_table
from resolute_experiments.store.schema import users, workspaces

MOST_STUCK = 10
"""Trials of one job that are listed as not moving."""


@dataclass(frozen=True, kw_only=True)
class StuckTrial:
    """A trial whose run does not move."""

    trial_number: int
    reason: str
    """Which of its processes keep the others, for people."""
    since: float
    """When that was noticed."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """An experiment that has not ended, in the queue."""

    experiment_id: str
    number: int
    name: str
    kind: ExperimentKind
    owner: str
    owner_id: int | None
    """None when the owner is no user of this cluster."""
    workspace_id: int
    state: ExperimentState
    share: Share
    """What it may have, and how urgently."""
    slots_per_trial: int
    held_slots: int
    """Slots that its trials hold now."""
    queued: int
    """Trials that wait for slots."""
    allocated: int
    """Trials that have some."""
    edit_revision: int
    progress: float
    """Done share in [0, 1]."""
    estimated_end_at: float | None
    """When it will be done; None until that is known."""
    steps_per_second: float | None
    """Of all its trials that run, together; None until that is known."""
    waits_since: float
    """When the first of those that wait was queued, or else when it was submitted. Unix seconds."""
    stuck: tuple[StuckTrial, ...]
    """Trials that make no progress, a few at most. The one that has stood still longest comes first."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A requested change of a job. None leaves a field unchanged."""

    priority: int | None = None
    weight: float | None = None
    max_slots: int | None = None
    """Zero removes the limit."""

    @property
    def resources(self) -> dict[str, float | None]:
        """The new values, as the config's section ``resources`` has them."""
        given = {"priority": self.priority, "weight": self.weight, "max_slots": self.max_slots}
        changed: dict[str, float | None] = {name: value for name, value in given.items() if value is not None}
        return {**changed, "max_slots": None} if self.max_slots == 0 else changed

    def check(self) -> None:
        """Checks the values.

        Raises:
            InvalidArgumentError: One of them cannot be, or there is none.
        """
        violations = []
        if self.priority is not None and not 1 <= self.priority <= 99:
            violations.append(Violation("job.priority", f"is {self.priority}; from 1 (most urgent) to 99"))
        if self.weight is not None and not (math.isfinite(self.weight) and self.weight > 0):
            violations.append(Violation("job.weight", f"is {self.weight:g}; a finite number above 0"))
        if self.max_slots is not None and self.max_slots < 0:
            violations.append(Violation("job.max_slots", f"is {self.max_slots}; 0 for no limit, or more"))
        if violations:
            raise InvalidArgumentError("; ".join(map(str, violations)), violations=violations)


def ordered_jobs(connection: Connection) -> list[Job]:
    """Reads every live experiment, in the order in which the scheduler serves them."""
    live = [state.value for state in LIVE_EXPERIMENTS]
    jobs = _read(connection, experiments_table.c.state.in_(live), runs.unfinalized(connection))
    return sorted(jobs, key=lambda job: (job.share.sort_key(job.held_slots), job.waits_since, job.number))


def update(connection: Connection, experiment: Experiment, change: Change, *, now: float) -> Job:
    """Changes what an experiment may have, and how urgently; its config tells the new values from then on.

    Raises:
        InvalidArgumentError: A value cannot be.
        IllegalTransitionError: The experiment has ended.
    """
    change.check()
    if experiment.state not in LIVE_EXPERIMENTS:
        raise IllegalTransitionError.between(
            experiment.label,
            from_state=experiment.state.value,
            to_state="changed in the queue",
            remedy="it has left the queue",
        )
    given = change.resources
    config = {**experiment.config, "resources": {**experiment.config["resources"], **given}}
    experiments.edit(connection, experiment.id, config=config, **given)
    audit.record(connection, "update_job", experiment.label, now=now, **given)
    open_runs = runs.unfinalized(connection, experiment_id=experiment.id)
    (job,) = _read(connection, experiments_table.c.id == experiment.id, open_runs)
    return job


def _read(
    connection: Connection, condition: sa.ColumnElement[bool], open_runs: Sequence[runs.Run]
) -> list[Job]:
    held: dict[str, int] = {}
    for run in open_runs:
        held[run.experiment_id] = held.get(run.experiment_id, 0) + len(run.slot_ids)
    stuck = _stuck(connection, open_runs)
    return [
        _job(row, held_slots=held.get(row.experiment_id, 0), stuck=stuck.get(row.experiment_id, ()))
        for row in connection.execute(_query(condition))
    ]


def _stuck(connection: Connection, open_runs: Sequence[runs.Run]) -> dict[str, tuple[StuckTrial, ...]]:
    found: dict[str, list[tuple[float, runs.Run]]] = {}
    for run in open_runs:
        if run.stuck_since is not None:
            found.setdefault(run.experiment_id, []).append((run.stuck_since, run))
    if not found:
        return {}
    kept = {experiment: sorted(stuck, key=itemgetter(0))[:MOST_STUCK] for experiment, stuck in found.items()}
    known = trials.known(connection, [run.trial_id for stuck in kept.values() for _, run in stuck])
    return {
        experiment: tuple(
            StuckTrial(trial_number=known[run.trial_id].number, reason=run.hang, since=since)
            for since, run in stuck
        )
        for experiment, stuck in kept.items()
    }


def _query(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    e, t = experiments_table.c, trials_table.c
    queued = t.state == TrialState.QUEUED.value
    allocated = t.state.in_([state.value for state in ALLOCATED_TRIALS])
    counts = (
        sa.select(
            t.experiment_id,
            sa.func.sum(sa.case((queued, 1), else_=0)).label("queued"),
            sa.func.sum(sa.case((allocated, 1), else_=0)).label("allocated"),
            sa.func.min(sa.case((queued, t.queued_at))).label("since"),
        )
        .where(sa.or_(queued, allocated))
        .group_by(t.experiment_id)
        .subquery()
    )
    return (
        sa.select(
            e.id.label("experiment_id"),
            e.number,
            e.name,
            e.kind,
            e.owner,
            users.c.number.label("owner_id"),
            sa.func.coalesce(workspaces.c.number, 0).label("workspace_id"),
            e.edit_revision,
            e.state,
            e.slots_per_trial,
            e.priority,
            e.weight,
            e.max_slots,
            e.created_at,
            e.progress,
            e.estimated_end_at,
            e.steps_per_second,
            counts.c.queued,
            counts.c.allocated,
            counts.c.since,
        )
        .select_from(experiments_table)
        .outerjoin(counts, counts.c.experiment_id == e.id)
        .outerjoin(users, users.c.name == e.owner)
        .outerjoin(workspaces, workspaces.c.name == e.workspace)
        .where(condition)
    )


def _job(row: sa.Row[Any], *, held_slots: int, stuck: tuple[StuckTrial, ...]) -> Job:
    return Job(
        experiment_id=row.experiment_id,
        number=row.number,
        name=row.name,
        kind=ExperimentKind(row.kind),
        owner=row.owner,
        owner_id=row.owner_id,
        workspace_id=row.workspace_id,
        edit_revision=row.edit_revision,
        state=ExperimentState(row.state),
        share=Share(max_slots=row.max_slots, priority=row.priority, weight=row.weight),
        slots_per_trial=row.slots_per_trial,
        held_slots=held_slots,
        queued=row.queued or 0,
        allocated=row.allocated or 0,
        progress=row.progress,
        estimated_end_at=row.estimated_end_at,
        steps_per_second=row.steps_per_second,
        waits_since=row.created_at if row.since is None else row.since,
        stuck=stuck,
    )
