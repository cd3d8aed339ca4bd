"""Experiments and their model definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.config.sections.resources import DEFAULT_PRIORITY
from resolute_experiments.states import ENDED_EXPERIMENTS, LIVE_EXPERIMENTS, ExperimentState
from resolute_experiments.store.schema import definition_chunks, experiments, outbox, trials

CHUNK_BYTES = 512 * 1024
"""Bytes of a model definition in one row and in one message."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One row of ``experiments``."""

    number: int
    id: str
    request_id: str
    name: str
    description: str
    labels: tuple[str, ...]
    state: ExperimentState
    archived: bool
    owner: str
    workspace: str
    project: str
    config: dict[str, Any]
    progress: float
    failure: str
    revision: int
    created_at: float
    ended_at: float | None
    definition_sha256: str
    definition_size: int
    search_created: bool
    action_cursor: int
    slots_per_trial: int
    single_node: bool | None
    max_slots: int | None
    priority: int
    weight: float
    unmanaged: bool
    external_id: str | None
    retention_owed: bool

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"experiment {self.number}"


@dataclass(frozen=True)
class SchedulingRank:
    """What counts of an experiment when others want its slots."""

    priority: int
    workspace: str


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which experiments a list wants."""

    states: frozenset[ExperimentState] = frozenset()
    owners: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    name: str = ""
    include_archived: bool = False


def insert(connection: Connection, values: dict[str, Any], chunks: Iterable[bytes]) -> Experiment:
    """Writes an experiment with its model definition, and returns it with its number."""
    connection.execute(sa.insert(experiments).values(**values, **queue_columns(values["config"])))
    rows = [
        {"experiment_id": values["id"], "position": position, "data": data}
        for position, data in enumerate(chunks)
    ]
    if rows:
        connection.execute(sa.insert(definition_chunks), rows)
    return get(connection, experiment_id=values["id"])


def get(connection: Connection, *, number: int = 0, experiment_id: str = "") -> Experiment:
    """Reads an experiment by its number or its UUID.

    Raises:
        NotFoundError: There is none.
    """
    condition = experiments.c.id == experiment_id if experiment_id else experiments.c.number == number
    row = connection.execute(sa.select(experiments).where(condition)).one_or_none()
    if row is None:
        label = experiment_id or str(number)
        raise NotFoundError(
            f"experiment {label} does not exist; `resolute experiment list --all` shows those that do",
            resource=f"experiment {label}",
        )
    return _from_row(row)


def by_request(connection: Connection, request_id: str) -> Experiment | None:
    """Reads the experiment that a request created, if it did."""
    row = connection.execute(
        sa.select(experiments).where(experiments.c.request_id == request_id)
    ).one_or_none()
    return None if row is None else _from_row(row)


def move(connection: Connection, experiment: Experiment, *, workspace: str, project: str) -> None:
    """Lets an experiment belong to another project."""
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.id == experiment.id)
        .values(workspace=workspace, project=project, revision=experiments.c.revision + 1)
    )


def by_external_id(connection: Connection, external_id: str) -> Experiment | None:
    """Reads the experiment that is known by a name outside of the cluster, if there is one."""
    query = sa.select(experiments).where(experiments.c.external_id == external_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else _from_row(row)


def live(connection: Connection) -> list[Experiment]:
    """Reads every experiment that needs a controller, oldest first."""
    states = [state.value for state in (*LIVE_EXPERIMENTS, ExperimentState.DELETING)]
    # Nobody leads an unmanaged experiment; but what others must be told of it may still wait.
    untold = sa.and_(experiments.c.unmanaged, experiments.c.id.in_(sa.select(outbox.c.experiment_id)))
    rows = connection.execute(
        sa.select(experiments)
        .where(sa.or_(experiments.c.state.in_(states), untold))
        .order_by(experiments.c.number)
    )
    return [_from_row(row) for row in rows]


def with_owed_retention(connection: Connection) -> list[Experiment]:
    """Reads every ended experiment whose policy is to be applied once more, oldest first."""
    states = [state.value for state in ENDED_EXPERIMENTS]
    query = sa.select(experiments).where(experiments.c.retention_owed, experiments.c.state.in_(states))
    return [_from_row(row) for row in connection.execute(query.order_by(experiments.c.number))]


def clear_owed_retention(connection: Connection, experiment: Experiment) -> None:
    """Notes that a policy was applied, unless the experiment has changed since: it may owe anew."""
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.id == experiment.id, experiments.c.revision == experiment.revision)
        .values(retention_owed=False)
    )


def scheduling_ranks(connection: Connection, ids: Collection[str]) -> dict[str, SchedulingRank]:
    """Reads what counts of some experiments when others want their slots, by UUID."""
    query = sa.select(experiments.c.id, experiments.c.priority, experiments.c.workspace)
    found = connection.execute(query.where(experiments.c.id.in_(ids)))
    return {row.id: SchedulingRank(row.priority, row.workspace) for row in found}


def page(connection: Connection, wanted: Filter, *, before: int | None, limit: int) -> list[Experiment]:
    """Reads a page of experiments, newest first.

    Args:
        connection: Where from.
        wanted: Which ones.
        before: Only numbers below this; None for the first page.
        limit: Most rows.
    """
    query = sa.select(experiments).order_by(experiments.c.number.desc())
    if wanted.states:
        query = query.where(experiments.c.state.in_([state.value for state in wanted.states]))
    else:
        query = query.where(experiments.c.state != ExperimentState.DELETED.value)
    if wanted.owners:
        query = query.where(experiments.c.owner.in_(wanted.owners))
    if wanted.name:
        query = query.where(sa.func.lower(experiments.c.name).contains(wanted.name.lower(), autoescape=True))
    if not wanted.include_archived:
        query = query.where(sa.not_(experiments.c.archived))
    if before is not None:
        query = query.where(experiments.c.number < before)
    found: list[Experiment] = []
    # Labels lie in a JSON list, which the two databases search differently: they are compared here.
    for row in connection.execute(query if wanted.labels else query.limit(limit)):
        experiment = _from_row(row)
        if wanted.labels <= set(experiment.labels):
            found.append(experiment)
        if len(found) == limit:
            break
    return found


def update(connection: Connection, experiment_id: str, **values: Any) -> None:
    """Changes columns of an experiment and raises its revision."""
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.id == experiment_id)
        .values(revision=experiments.c.revision + 1, **values)
    )


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


def delete_contents(connection: Connection, experiment_id: str) -> None:
    """Removes what an experiment holds but its own row, which stays as a tombstone."""
    connection.execute(sa.delete(definition_chunks).where(definition_chunks.c.experiment_id == experiment_id))


def queue_columns(config: dict[str, Any]) -> dict[str, Any]:
    """Gives the columns by which the queue is ordered, as a config says them."""
    resources = config["resources"]
    return {
        "slots_per_trial": resources["slots_per_trial"],
        "single_node": resources.get("is_single_node"),
        "max_slots": resources.get("max_slots"),
        "priority": resources.get("priority") or DEFAULT_PRIORITY,
        "weight": resources.get("weight") or 1.0,
    }


def _from_row(row: sa.Row[Any]) -> Experiment:
    values = dict(row._mapping)
    values["labels"] = tuple(values["labels"])
    values["state"] = ExperimentState(values["state"])
    return Experiment(**values)
