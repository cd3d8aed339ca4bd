"""The contents of workspaces and projects, and the current usage of their experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.states import LIVE_EXPERIMENTS, RunOutcome
from resolute_experiments.store.schema import experiments, projects, runs


def _counted(key: sa.Column[Any], *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    wanted = key.in_(sa.bindparam("keys", expanding=True))
    return sa.select(key, sa.func.count()).where(wanted, *conditions).group_by(key)


_LIVE_EXPERIMENTS = _counted(
    experiments.c.workspace, experiments.c.state.in_([state.value for state in LIVE_EXPERIMENTS])
)
# Not one pass over the experiments: an index has the workspaces of all, another the few that are live.
_OF_WORKSPACES = {
    "projects": _counted(projects.c.workspace),
    "experiments": _counted(experiments.c.workspace),
    "live_experiments": _LIVE_EXPERIMENTS,
}
_CONTENTS = sa.union_all(
    *(query.add_columns(sa.literal_column(f"'{what}'")) for what, query in _OF_WORKSPACES.items())
)
_EXPERIMENTS_OF_PROJECTS = _counted(projects.c.number).join(
    experiments,
    sa.and_(experiments.c.workspace == projects.c.workspace, experiments.c.project == projects.c.name),
)
_HELD = (
    sa.select(experiments.c.workspace, runs.c.slot_ids)
    .join(experiments, experiments.c.id == runs.c.experiment_id)
    .where(
        experiments.c.workspace.in_(sa.bindparam("keys", expanding=True)),
        runs.c.outcome == RunOutcome.UNSPECIFIED.value,
    )
)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The contents of a workspace, and the current usage of its experiments."""

    projects: int
    experiments: int
    live_experiments: int
    """Experiments that have not ended."""
    slots: int
    """Slots of runs that have not ended."""


NOTHING = Usage(projects=0, experiments=0, live_experiments=0, slots=0)
"""Of a workspace that is new."""


def of_workspaces(connection: Connection, names: Collection[str]) -> Mapping[str, Usage]:
    """Reads what workspaces hold and use, in as many statements for one workspace as for all.

    Args:
        connection: The transaction.
        names: Names of the workspaces.
    """
    counts = {name: dict.fromkeys(_OF_WORKSPACES, 0) for name in names}
    for name, count, what in connection.execute(_CONTENTS, {"keys": list(names)}):
        counts[name][what] = count
    slots = _slots(connection, names)
    return {name: Usage(**counts[name], slots=slots[name]) for name in names}


def live_experiments(connection: Connection, workspace: str) -> int:
    """Counts the experiments of a workspace that have not ended."""
    return _counts(connection, _LIVE_EXPERIMENTS, [workspace])[workspace]


def experiments_of_projects(connection: Connection, numbers: Collection[int]) -> Mapping[int, int]:
    """Counts the experiments of projects, by the ids of the projects; those without any count zero."""
    return _counts(connection, _EXPERIMENTS_OF_PROJECTS, numbers)


def _counts(connection: Connection, query: sa.Select[Any], keys: Collection[Any]) -> Counter[Any]:
    """Counts rows by one of the keys that they have."""
    return Counter(dict(connection.execute(query, {"keys": list(keys)}).all()))


def _slots(connection: Connection, names: Collection[str]) -> Counter[str]:
    slots: Counter[str] = Counter()
    for workspace, slot_ids in connection.execute(_HELD, {"keys": list(names)}):
        slots[workspace] += len(slot_ids)
    return slots
