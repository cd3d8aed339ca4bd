"""What workspaces and projects hold, and what their experiments use now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.states import LIVE_EXPERIMENTS, RunOutcome
from resolute_experiments.store.schema import experiments, projects, runs


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a workspace holds, and what its experiments use now."""

    projects: int
    experiments: int
    live_experiments: int
    """Experiments that have not ended."""
    slots: int
    """Slots of runs that have not ended."""


def of_workspaces(connection: Connection, names: Collection[str]) -> Mapping[str, Usage]:
    """Reads what workspaces hold and use, in as many statements for one workspace as for all.

    Args:
        connection: The transaction.
        names: Names of the workspaces.
    """
    live = experiments.c.state.in_([state.value for state in LIVE_EXPERIMENTS])
    owned_projects = _counts(connection, projects.c.workspace, names)
    # Two statements: an index has the workspaces of all experiments, another the few that are live.
    all_experiments = _counts(connection, experiments.c.workspace, names)
    live_experiments = _counts(connection, experiments.c.workspace, names, live)
    slots = _slots(connection, names)
    return {
        name: Usage(
            projects=owned_projects[name],
            experiments=all_experiments[name],
            live_experiments=live_experiments[name],
            slots=slots[name],
        )
        for name in names
    }


def live_experiments(connection: Connection, workspace: str) -> int:
    """Counts the experiments of a workspace that have not ended."""
    live = experiments.c.state.in_([state.value for state in LIVE_EXPERIMENTS])
    return _counts(connection, experiments.c.workspace, [workspace], live)[workspace]


def experiments_of_projects(connection: Connection, numbers: Collection[int]) -> Mapping[int, int]:
    """Counts the experiments of projects, by the ids of the projects; those without any count zero."""
    same = sa.and_(experiments.c.workspace == projects.c.workspace, experiments.c.project == projects.c.name)
    query = sa.select(projects.c.number).join(experiments, same).where(projects.c.number.in_(numbers))
    return _rows_by_key(connection, query.group_by(projects.c.number))


def _counts(
    connection: Connection,
    workspace: sa.ColumnElement[str],
    names: Collection[str],
    *conditions: sa.ColumnElement[bool],
) -> Counter[str]:
    """Counts the rows of a table, by the column that names their workspace."""
    query = sa.select(workspace).where(workspace.in_(names), *conditions)
    return _rows_by_key(connection, query.group_by(workspace))


def _rows_by_key(connection: Connection, query: sa.Select[Any]) -> Counter[Any]:
    return Counter(dict(connection.execute(query.add_columns(sa.func.count())).all()))


def _slots(connection: Connection, names: Collection[str]) -> Counter[str]:
    held = (
        sa.select(experiments.c.workspace, runs.c.slot_ids)
        .join(experiments, experiments.c.id == runs.c.experiment_id)
        .where(experiments.c.workspace.in_(names), runs.c.outcome == RunOutcome.UNSPECIFIED.value)
    )
    slots: Counter[str] = Counter()
    for workspace, slot_ids in connection.execute(held):
        slots[workspace] += len(slot_ids)
    return slots
