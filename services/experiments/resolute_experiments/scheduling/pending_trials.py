"""Reads the trials that wait for slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.scheduling.placement import Demand
from resolute_experiments.scheduling.policy import Request, Share
from resolute_experiments.states import ExperimentState, TrialState
from resolute_experiments.store.schema import experiments, trials, workspaces

_LARGEST = 2**63 - 1


def without_pool(connection: Connection, *, pools: Sequence[str]) -> dict[str, str]:
    """Reads which active experiments wait for a pool that is none of these, with its name."""
    query = sa.select(experiments.c.id, experiments.c.resource_pool).where(
        experiments.c.state == ExperimentState.ACTIVE.value,
        sa.not_(experiments.c.unmanaged),
        experiments.c.resource_pool.not_in(["", *pools]),
    )
    return {row.id: row.resource_pool for row in connection.execute(query)}


def pending_trials(
    connection: Connection, *, per_experiment: int, without_slots: int, pools: Sequence[str] = ()
) -> list[Request]:
    """Reads the trials of active experiments that wait for slots, in the order of the queue.

    The experiment comes first of which a trial has waited longest. Among the trials of one experiment
    those that were made first come first: one that was promoted, preempted or restarted goes on before
    others begin, so that a search ends what it has begun, and its longest trials do not start last.

    Args:
        connection: Where from.
        per_experiment: Most trials of one experiment, the first in its own queue.
        without_slots: The same of an experiment whose trials want no slots.
        pools: Those that wait for one of these pools alone, by names that experiments have for it.
    """
    # One search of the index for each experiment: what waits behind its first trials is not even counted.
    last = sa.case(
        (experiments.c.slots_per_trial == 0, _number_in_queue(without_slots)),
        else_=_number_in_queue(per_experiment),
    )
    first_ones = sa.and_(
        trials.c.experiment_id == experiments.c.id,
        trials.c.state == TrialState.QUEUED.value,
        trials.c.number <= sa.func.coalesce(last, _LARGEST),
    )
    query = (
        sa.select(
            trials.c.id,
            trials.c.experiment_id,
            trials.c.queued_at,
            trials.c.excluded_nodes,
            experiments.c.slots_per_trial,
            experiments.c.single_node,
            experiments.c.max_slots,
            experiments.c.priority,
            experiments.c.weight,
            experiments.c.workspace,
            workspaces.c.slots.label("workspace_slots"),
        )
        .select_from(experiments)
        # Outer, so that SQLite begins with the experiments, and not with thousands of trials.
        .outerjoin(trials, first_ones)
        .outerjoin(workspaces, workspaces.c.name == experiments.c.workspace)
        .where(experiments.c.state == ExperimentState.ACTIVE.value)
        .order_by(trials.c.number)
    )
    if pools:
        query = query.where(experiments.c.resource_pool.in_(pools))
    rows = [row for row in connection.execute(query) if row.id is not None]
    since: dict[str, float] = {}
    for row in rows:
        since[row.experiment_id] = min(since.get(row.experiment_id, row.queued_at), row.queued_at)
    # Sorting keeps the order of rows that compare equal: that of an experiment's own trials.
    ordered = sorted(rows, key=lambda row: since[row.experiment_id])
    return [_request(row) for row in ordered]


def _number_in_queue(place: int) -> sa.ScalarSelect[Any]:
    """The number of the trial at a place, from one, in an experiment's own queue; NULL if that is shorter."""
    queued = trials.alias()
    return (
        sa.select(queued.c.number)
        .where(queued.c.experiment_id == experiments.c.id, queued.c.state == TrialState.QUEUED.value)
        .order_by(queued.c.number)
        .limit(1)
        .offset(place - 1)
        .correlate(experiments)
        .scalar_subquery()
    )


def _request(row: Any) -> Request:
    return Request(
        trial_id=row.id,
        experiment_id=row.experiment_id,
        demand=Demand(
            slots=row.slots_per_trial, single_node=row.single_node, excluded=frozenset(row.excluded_nodes)
        ),
        share=Share(
            max_slots=row.max_slots,
            priority=row.priority,
            weight=row.weight,
            workspace=row.workspace,
            workspace_slots=row.workspace_slots or None,
        ),
    )
