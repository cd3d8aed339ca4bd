"""Looks up imported objects by their numbers on the other cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.imports.imported import id_of
from resolute_experiments.states import GONE_EXPERIMENTS
from resolute_experiments.store.schema import experiments, trials, workspaces


@dataclass(frozen=True, slots=True)
class Found:
    """The identity here of an imported experiment or trial."""

    external_id: str
    number: int
    id: str


def find_experiments(connection: Connection, number: int, *, visible: frozenset[int] | None) -> list[Found]:
    """Finds the experiments that had a number on another cluster.

    Args:
        connection: Reads.
        number: The number there.
        visible: Only those in these workspaces, by id; None for all.
    """
    columns = experiments.c
    query = sa.select(columns.external_id, columns.number, columns.id).select_from(experiments)
    return _found(connection, query, columns.external_id.like(f"%/experiment/{number}"), visible=visible)


def find_trials(connection: Connection, number: int, *, visible: frozenset[int] | None) -> list[Found]:
    """Finds the trials that had a number on another cluster; see ``find_experiments``."""
    columns = trials.c
    query = sa.select(columns.external_id, columns.number, columns.id).select_from(trials)
    query = query.join(experiments, experiments.c.id == columns.experiment_id)
    return _found(connection, query, columns.external_id.like(f"%/trial/{number}"), visible=visible)


def _found(
    connection: Connection,
    query: sa.Select[Any],
    has_number: sa.ColumnElement[bool],
    *,
    visible: frozenset[int] | None,
) -> list[Found]:
    gone = [state.value for state in GONE_EXPERIMENTS]
    query = query.where(has_number, experiments.c.unmanaged, experiments.c.state.not_in(gone))
    if visible is not None:
        query = query.join(workspaces, workspaces.c.name == experiments.c.workspace)
        query = query.where(workspaces.c.number.in_(visible))
    rows = connection.execute(query.order_by(query.selected_columns.number))
    found = [Found(row.external_id, row.number, row.id) for row in rows]
    # Scripts outside of the cluster give names too, but UUIDs that do not follow from them.
    return [one for one in found if one.id == id_of(one.external_id)]
