"""Lookup of the workspaces of experiments, trials, allocations and projects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import experiments, projects, runs, trials, workspaces
from resolute_serving.auth.policy.resources import Kind, Resource

_LARGEST_NUMBER = 2**31 - 1
_KEYS: Mapping[Kind, sa.ColumnElement[Any]] = {
    Kind.EXPERIMENT: experiments.c.id,
    Kind.EXPERIMENT_NUMBER: experiments.c.number,
    Kind.TRIAL: trials.c.id,
    Kind.TRIAL_NUMBER: trials.c.number,
    Kind.ALLOCATION: runs.c.allocation_id,
    Kind.PROJECT: projects.c.number,
    Kind.WORKSPACE: workspaces.c.number,
}
_EXPERIMENTS = sa.join(experiments, workspaces, workspaces.c.name == experiments.c.workspace)
_SOURCES: Mapping[Kind, sa.FromClause] = {
    Kind.EXPERIMENT: _EXPERIMENTS,
    Kind.EXPERIMENT_NUMBER: _EXPERIMENTS,
    Kind.TRIAL: _EXPERIMENTS.join(trials, trials.c.experiment_id == experiments.c.id),
    Kind.TRIAL_NUMBER: _EXPERIMENTS.join(trials, trials.c.experiment_id == experiments.c.id),
    Kind.ALLOCATION: _EXPERIMENTS.join(runs, runs.c.experiment_id == experiments.c.id),
    Kind.PROJECT: sa.join(projects, workspaces, workspaces.c.name == projects.c.workspace),
    Kind.WORKSPACE: workspaces,
}


def workspaces_of(connection: Connection, resources: Collection[Resource]) -> dict[Resource, int]:
    """The ids of the workspaces that objects belong to; what does not exist is left out."""
    located: dict[Resource, int] = {}
    by_kind: dict[Kind, dict[Any, Resource]] = {}
    for resource in resources:
        key = _value(resource)
        if key is not None:
            by_kind.setdefault(resource.kind, {})[key] = resource
    for kind, named in by_kind.items():
        column = _KEYS[kind]
        query = sa.select(column.label("key"), workspaces.c.number.label("workspace")).select_from(
            _SOURCES[kind]
        )
        rows = connection.execute(query.where(column.in_(list(named))))
        located.update((named[row.key], row.workspace) for row in rows)
    return located


def _value(resource: Resource) -> Any:
    """What the column of a key holds; None for what no row can have."""
    if resource.kind in {Kind.EXPERIMENT, Kind.TRIAL, Kind.ALLOCATION}:
        return resource.key if resource.key.isprintable() else None
    number = int(resource.key)
    return number if 0 < number <= _LARGEST_NUMBER else None
