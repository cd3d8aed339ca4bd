"""Experiments and their model definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.priorities import DEFAULT_PRIORITY
from resolute.errors import NotFoundError
from resolute_experiments.states import ENDED_EXPERIMENTS, LIVE_EXPERIMENTS, ExperimentState
from resolute_experiments.store.schema import (
    definition_chunks,
    experiment_sources,
    experiments,
    outbox,
    projects,
    trials,
    users,
    wait_reasons,
    workspaces,
)
from resolute_experiments.store.schema.experiments import Experiment as Experiment  # noqa: PLC0414 - also for callers
from resolute_experiments.store.schema.experiments import ExperimentKind as ExperimentKind  # noqa: PLC0414 - also for callers
from resolute_serving.pagination import Ordering

CHUNK_BYTES = 512 * 1024
"""Bytes of a model definition in one row and in one message."""


_FIELDS = tuple(field.name for field in fields(Experiment))


@dataclass(frozen=True)
class SchedulingRank:
    """What counts of an experiment when others want its slots."""

    priority: int
    workspace: str
    preemptible: bool
    """Whether a more urgent trial may take its slots."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which experiments a list wants; what is empty or None filters nothing, but DELETED ones are hidden."""

    states: frozenset[ExperimentState] = frozenset()
    owner_ids: frozenset[int] = frozenset()
    workspace_ids: frozenset[int] = frozenset()
    project_ids: frozenset[int] = frozenset()
    labels: frozenset[str] = frozenset()
    """All of these."""
    name: str = ""
    """Part of the name, in any case."""
    archived: bool | None = None
    kinds: frozenset[ExperimentKind] = frozenset({ExperimentKind.SEARCH})
    visible: frozenset[int] | None = None
    """Only those in these workspaces, by id; None for all, also those in workspaces that are gone."""


_ORDERING = Ordering(
    {
        "number": experiments.c.number,
        "name": experiments.c.name,
        "create_time": experiments.c.created_at,
        "end_time": experiments.c.ended_at,
        "state": experiments.c.state,
        "progress": experiments.c.progress,
        "owner_name": experiments.c.owner,
        "workspace_name": experiments.c.workspace,
        "project_name": experiments.c.project,
    },
    unique=experiments.c.number,
    default="number desc",
)


def all_experiments() -> sa.Select[Any]:
    """Selects all experiments, with the ids of what their names refer to: names change with those of rows."""
    held = sa.and_(projects.c.workspace == experiments.c.workspace, projects.c.name == experiments.c.project)
    return (
        sa.select(
            experiments,
            users.c.number.label("owner_id"),
            sa.func.coalesce(workspaces.c.number, 0).label("workspace_id"),
            sa.func.coalesce(projects.c.number, 0).label("project_id"),
        )
        .select_from(experiments)
        .outerjoin(users, users.c.name == experiments.c.owner)
        .outerjoin(workspaces, workspaces.c.name == experiments.c.workspace)
        .outerjoin(projects, held)
    )


def insert(
    connection: Connection, values: dict[str, Any], chunks: Iterable[bytes], *, source: bytes = b""
) -> Experiment:
    """Writes an experiment with its model definition, and returns it with its number.

    Args:
        connection: A transaction.
        values: Its columns.
        chunks: Its model definition.
        source: A serialized ``CodeSource``; empty for none.
    """
    connection.execute(sa.insert(experiments).values(**values, **queue_columns(values["config"])))
    rows = [
        {"experiment_id": values["id"], "position": position, "data": data}
        for position, data in enumerate(chunks)
    ]
    if rows:
        connection.execute(sa.insert(definition_chunks), rows)
    if source:
        connection.execute(sa.insert(experiment_sources).values(experiment_id=values["id"], content=source))
    return get(connection, experiment_id=values["id"])


def get(connection: Connection, *, number: int = 0, experiment_id: str = "") -> Experiment:
    """Reads an experiment by its number or its UUID.

    Raises:
        NotFoundError: There is none.
    """
    condition = experiments.c.id == experiment_id if experiment_id else experiments.c.number == number
    row = connection.execute(all_experiments().where(condition)).one_or_none()
    if row is None:
        label = experiment_id or str(number)
        raise NotFoundError(
            f"experiment {label} does not exist; `resolute experiment list --all` shows those that do",
            resource=f"experiment {label}",
        )
    return _from_row(row)


def move(connection: Connection, experiment: Experiment, *, workspace: str, project: str) -> None:
    """Lets an experiment belong to another project."""
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.id == experiment.id)
        .values(workspace=workspace, project=project, revision=experiments.c.revision + 1)
    )


def by_external_id(connection: Connection, external_id: str) -> Experiment | None:
    """Reads the experiment that is known by a name outside of the cluster, if there is one."""
    query = all_experiments().where(experiments.c.external_id == external_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else _from_row(row)


def live(connection: Connection) -> list[Experiment]:
    """Reads every experiment that needs a controller, oldest first."""
    states = [state.value for state in (*LIVE_EXPERIMENTS, ExperimentState.DELETING)]
    # Nobody leads an unmanaged experiment; but what others must be told of it may still wait.
    untold = sa.and_(experiments.c.unmanaged, experiments.c.id.in_(sa.select(outbox.c.experiment_id)))
    rows = connection.execute(
        all_experiments()
        .where(sa.or_(experiments.c.state.in_(states), untold))
        .order_by(experiments.c.number)
    )
    return [_from_row(row) for row in rows]


def with_owed_retention(connection: Connection) -> list[Experiment]:
    """Reads every ended experiment whose policy is to be applied once more, oldest first."""
    states = [state.value for state in ENDED_EXPERIMENTS]
    query = all_experiments().where(experiments.c.retention_owed, experiments.c.state.in_(states))
    return [_from_row(row) for row in connection.execute(query.order_by(experiments.c.number))]


def clear_owed_retention(connection: Connection, experiment: Experiment) -> None:
    """Notes that a policy was applied, unless the experiment has changed since: it may owe again."""
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.id == experiment.id, experiments.c.revision == experiment.revision)
        .values(retention_owed=False)
    )


def scheduling_ranks(connection: Connection, ids: Collection[str]) -> dict[str, SchedulingRank]:
    """Reads what counts of some experiments when others want their slots, by UUID."""
    query = sa.select(experiments.c.id, experiments.c.priority, experiments.c.workspace, experiments.c.kind)
    found = connection.execute(query.where(experiments.c.id.in_(ids)))
    return {
        row.id: SchedulingRank(row.priority, row.workspace, row.kind == ExperimentKind.SEARCH.value)
        for row in found
    }


def page(connection: Connection, request: Any, wanted: Filter) -> tuple[list[Experiment], str]:
    """Reads a page of experiments.

    Args:
        connection: Where from.
        request: Has the size, the token and the order.
        wanted: Which ones.

    Returns:
        The experiments, and the token of the next page.
    """
    found = _ORDERING.page(connection, request, _matching(connection, wanted))
    return [_from_mapping(row) for row in found.rows], found.next_page_token


def _matching(connection: Connection, wanted: Filter) -> sa.Select[Any]:
    query = all_experiments().where(experiments.c.kind.in_([kind.value for kind in wanted.kinds]))
    if wanted.states:
        query = query.where(experiments.c.state.in_([state.value for state in wanted.states]))
    else:
        query = query.where(experiments.c.state != ExperimentState.DELETED.value)
    for column, ids in (
        (users.c.number, wanted.owner_ids),
        (workspaces.c.number, wanted.workspace_ids),
        (projects.c.number, wanted.project_ids),
    ):
        if ids:
            query = query.where(column.in_(ids))
    if wanted.visible is not None:
        query = query.where(workspaces.c.number.in_(wanted.visible))
    if wanted.name:
        query = query.where(sa.func.lower(experiments.c.name).contains(wanted.name.lower(), autoescape=True))
    if wanted.archived is not None:
        query = query.where(experiments.c.archived == wanted.archived)
    for label in wanted.labels:
        query = query.where(_has_label(connection, label))
    return query


def _has_label(connection: Connection, label: str) -> sa.ColumnElement[bool]:
    """Whether the JSON list of labels has one; each database unfolds such a list by its own function."""
    unfold = (
        sa.func.json_array_elements_text if connection.dialect.name == "postgresql" else sa.func.json_each
    )
    held = unfold(experiments.c.labels).table_valued("value")
    return sa.exists(sa.select(sa.literal(1)).select_from(held).where(held.c.value == label))


def revisions(connection: Connection, ids: Collection[str]) -> dict[str, int]:
    """Reads the revisions of some experiments, by UUID."""
    query = sa.select(experiments.c.id, experiments.c.revision).where(experiments.c.id.in_(ids))
    return {row.id: row.revision for row in connection.execute(query)}


def update(connection: Connection, experiment_id: str, **values: Any) -> None:
    """Changes columns of an experiment and raises its revision."""
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.id == experiment_id)
        .values(revision=experiments.c.revision + 1, **values)
    )


def edit(connection: Connection, experiment_id: str, **values: Any) -> None:
    """Changes columns that people write, or the config, and raises both revisions."""
    update(connection, experiment_id, edit_revision=experiments.c.edit_revision + 1, **values)


def touch(connection: Connection, experiment_id: str) -> int:
    """Raises an experiment's revision for a change of one of its trials, and returns it."""
    update(connection, experiment_id)
    return int(
        connection.execute(
            sa.select(experiments.c.revision).where(experiments.c.id == experiment_id)
        ).scalar_one()
    )


def trial_counts(connection: Connection, ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts trials by experiment and state."""
    rows = connection.execute(
        sa.select(trials.c.experiment_id, trials.c.state, sa.func.count())
        .where(trials.c.experiment_id.in_(ids))
        .group_by(trials.c.experiment_id, trials.c.state)
    )
    counts: dict[str, dict[str, int]] = {}
    for experiment_id, state, count in rows:
        counts.setdefault(experiment_id, {})[state] = count
    return counts


def definition(connection: Connection, experiment_id: str) -> Iterator[bytes]:
    """Reads the model definition in order, chunk by chunk."""
    rows = connection.execute(
        sa.select(definition_chunks.c.data)
        .where(definition_chunks.c.experiment_id == experiment_id)
        .order_by(definition_chunks.c.position)
    )
    for row in rows:
        yield bytes(row.data)


def definition_chunk(connection: Connection, experiment_id: str, position: int) -> bytes | None:
    """Reads one chunk of the model definition; None past the end."""
    data = connection.execute(
        sa.select(definition_chunks.c.data).where(
            definition_chunks.c.experiment_id == experiment_id, definition_chunks.c.position == position
        )
    ).scalar_one_or_none()
    return None if data is None else bytes(data)


def source(connection: Connection, experiment_id: str) -> bytes:
    """Reads where the code came from: a serialized ``CodeSource``; empty when that is not known."""
    query = sa.select(experiment_sources.c.content).where(experiment_sources.c.experiment_id == experiment_id)
    return bytes(connection.execute(query).scalar_one_or_none() or b"")


def delete_contents(connection: Connection, experiment_id: str) -> None:
    """Removes what an experiment holds but its own row, which stays as a tombstone."""
    for table in (definition_chunks, experiment_sources, wait_reasons):
        connection.execute(sa.delete(table).where(table.c.experiment_id == experiment_id))


def queue_columns(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns by which the queue is ordered, as a config says them."""
    resources = config["resources"]
    return {
        "slots_per_trial": resources["slots_per_trial"],
        "single_node": resources.get("is_single_node"),
        "max_slots": resources.get("max_slots"),
        "priority": resources.get("priority") or DEFAULT_PRIORITY,
        "weight": resources.get("weight") or 1.0,
    }


def _from_row(row: sa.Row[Any]) -> Experiment:
    return _from_mapping(row._mapping)


def _from_mapping(row: Mapping[Any, Any]) -> Experiment:
    values = {name: row[name] for name in _FIELDS}
    values["labels"] = tuple(values["labels"])
    values["state"] = ExperimentState(values["state"])
    values["kind"] = ExperimentKind(values["kind"])
    return Experiment(**values)
