"""Runs with their allocations: slots, containers, signals."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.states import RunOutcome
from resolute_experiments.store.schema.experiments import experiments
from resolute_experiments.store.schema.runs import Container as Container  # noqa: PLC0414 - also for callers
from resolute_experiments.store.schema.runs import Run as Run  # noqa: PLC0414 - also for callers
from resolute_experiments.store.schema.runs import containers, environments, machine_usage, runs
from resolute_serving.database.engine import insert_new

_BATCH = 500
"""Parameters of one statement."""
_MOST_LEFT_OUT, _LEFT_OUT_LENGTH = 100, 300


_BY_ALLOCATION = sa.select(runs).where(runs.c.allocation_id == sa.bindparam("allocation_id"))
_OF_TRIAL = sa.select(runs).where(runs.c.trial_id == sa.bindparam("trial_id")).order_by(runs.c.run)
_CONTAINERS = (
    sa.select(containers)
    .where(containers.c.allocation_id == sa.bindparam("allocation_id"))
    .order_by(containers.c.container_rank)
)
_TIMES = (
    sa.select(
        runs.c.trial_id,
        sa.func.sum(runs.c.ended_at - runs.c.held_from).label("seconds"),
        sa.func.max(sa.case((runs.c.ended_at.is_(None), runs.c.held_from))).label("current"),
    )
    .where(runs.c.trial_id.in_(sa.bindparam("ids", expanding=True)))
    .group_by(runs.c.trial_id)
)
_HELD = (
    sa.select(
        runs.c.experiment_id,
        runs.c.held_from,
        runs.c.ended_at,
        # What was held before, by whichever trial, and since when something is held now.
        sa.func.max(runs.c.ended_at)
        .over(partition_by=runs.c.experiment_id, order_by=runs.c.held_from, rows=(None, -1))
        .label("before"),
        sa.func.min(sa.case((runs.c.ended_at.is_(None), runs.c.held_from)))
        .over(partition_by=runs.c.experiment_id)
        .label("current"),
    )
    .where(runs.c.experiment_id.in_(sa.bindparam("ids", expanding=True)), runs.c.held_from.is_not(None))
    .subquery()
)
_FROM = sa.case((_HELD.c.before > _HELD.c.held_from, _HELD.c.before), else_=_HELD.c.held_from)
_UNTIL = sa.case((_HELD.c.current < _HELD.c.ended_at, _HELD.c.current), else_=_HELD.c.ended_at)
_TIMES_OF_EXPERIMENTS = sa.select(
    _HELD.c.experiment_id,
    sa.func.sum(sa.case((_UNTIL > _FROM, _UNTIL - _FROM), else_=0.0)).label("seconds"),
    sa.func.min(_HELD.c.current).label("current"),
).group_by(_HELD.c.experiment_id)
_OPEN = sa.select(runs).where(runs.c.outcome == RunOutcome.UNSPECIFIED.value).order_by(runs.c.started_at)
_UNFINALIZED = _OPEN.where(runs.c.request_id.is_(None))
_UNFINALIZED_OF_EXPERIMENT = _UNFINALIZED.where(runs.c.experiment_id == sa.bindparam("experiment_id"))
_START = (
    sa.update(experiments)
    .where(
        experiments.c.id == sa.bindparam("experiment"),
        sa.or_(experiments.c.started_at.is_(None), experiments.c.started_at > sa.bindparam("start")),
    )
    .values(started_at=sa.bindparam("start"), revision=experiments.c.revision + 1)
)
_SIGNALLED = _UNFINALIZED.where(runs.c.signal_revision > 0)
_UNMANAGED = _OPEN.where(runs.c.request_id.is_not(None))


def note_start(connection: Connection, experiment_id: str, at: float) -> None:
    """Writes when a trial of an experiment got slots, unless one did before.

    Args:
        connection: A transaction.
        experiment_id: UUID of the experiment.
        at: Unix time.
    """
    connection.execute(_START, {"experiment": experiment_id, "start": at})


def insert(
    connection: Connection,
    values: dict[str, Any],
    *,
    placements: Sequence[Sequence[int]],
    nodes: Sequence[int] = (),
    in_queue: bool = False,
) -> None:
    """Writes a run with one container for each placement.

    Args:
        connection: Where to.
        values: The columns of the run.
        placements: Slots of each container.
        nodes: Node of each container; the first for all when empty.
        in_queue: Whether it waits in the queue of its engine; any other holds its slots from its start on.
    """
    held_from = None if in_queue else values["started_at"]
    connection.execute(sa.insert(runs).values(held_from=held_from, **values))
    if held_from is not None:
        note_start(connection, values["experiment_id"], held_from)
    rows = [
        {
            "allocation_id": values["allocation_id"],
            "container_rank": rank,
            "slot_ids": list(slots),
            "node": nodes[rank] if nodes else 0,
            "address": "",
            "ports": [],
            "pid": 0,
            "exited": False,
            "lost": False,
            "acknowledged": False,
            "early_exit_reason": "",
            "failure": "",
        }
        for rank, slots in enumerate(placements)
    ]
    if rows:
        connection.execute(sa.insert(containers), rows)


def note_slots(connection: Connection, run: Run, at: float) -> None:
    """Writes since when a run holds its slots, unless it is known already."""
    if run.held_from is None:
        update(connection, run.allocation_id, held_from=at)
        note_start(connection, run.experiment_id, at)


def get(connection: Connection, allocation_id: str) -> Run:
    """Reads a run by its allocation.

    Raises:
        NotFoundError: There is none.
    """
    row = connection.execute(_BY_ALLOCATION, {"allocation_id": allocation_id}).one_or_none()
    if row is None:
        raise NotFoundError(
            f"allocation {allocation_id} does not exist; its experiment may have been deleted",
            resource=f"allocation {allocation_id}",
        )
    return _from_row(row)


def of_trial(connection: Connection, trial_id: str) -> list[Run]:
    """Reads a trial's runs in order."""
    return [_from_row(row) for row in connection.execute(_OF_TRIAL, {"trial_id": trial_id})]


def of_trials(connection: Connection, trial_ids: Sequence[str]) -> dict[str, list[Run]]:
    """Reads the runs of some trials, at most a page of them, by number; trials without runs are left out."""
    query = sa.select(runs).where(runs.c.trial_id.in_(trial_ids)).order_by(runs.c.trial_id, runs.c.run)
    by_trial: dict[str, list[Run]] = {}
    for row in connection.execute(query):
        by_trial.setdefault(row.trial_id, []).append(_from_row(row))
    return by_trial


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The time for which a trial, or any trial of an experiment, has held slots."""

    ended_seconds: float = 0.0
    """In its runs that have ended."""
    started_at: float | None = None
    """When its current run, or the first of them, got its slots; None without one."""


def times_of(connection: Connection, trial_ids: Sequence[str]) -> dict[str, RunTimes]:
    """Reads how long trials have held slots; trials without runs are left out."""
    times: dict[str, RunTimes] = {}
    for first in range(0, len(trial_ids), _BATCH):
        rows = connection.execute(_TIMES, {"ids": trial_ids[first : first + _BATCH]})
        times.update({row.trial_id: RunTimes(row.seconds or 0.0, row.current) for row in rows})
    return times


def times_of_experiments(connection: Connection, ids: Collection[str]) -> dict[str, RunTimes]:
    """Reads how long some trial of experiments has held slots; what several held at once counts once."""
    rows = connection.execute(_TIMES_OF_EXPERIMENTS, {"ids": list(ids)})
    return {row.experiment_id: RunTimes(row.seconds or 0.0, row.current) for row in rows}


def trials_of(connection: Connection, experiment_id: str, allocations: Sequence[str]) -> frozenset[str]:
    """Names the trials of an experiment that some allocations were for."""
    query = sa.select(runs.c.trial_id).where(
        runs.c.experiment_id == experiment_id, runs.c.allocation_id.in_(allocations)
    )
    return frozenset(connection.execute(query).scalars())


def checkpoint_directories(connection: Connection, experiment_id: str) -> list[str]:
    """Where runs of an experiment kept their checkpoints, beside the storage of its config."""
    column = runs.c.checkpoint_directory
    query = sa.select(column).where(runs.c.experiment_id == experiment_id, column != "")
    return list(connection.execute(query.distinct().order_by(column)).scalars())


def by_request(connection: Connection, request_id: str) -> Run | None:
    """Reads the run outside of the cluster that a request began, if it did."""
    row = connection.execute(sa.select(runs).where(runs.c.request_id == request_id)).one_or_none()
    return None if row is None else _from_row(row)


def unfinalized(connection: Connection, *, experiment_id: str = "") -> list[Run]:
    """Reads every run on this cluster that was not settled, oldest first; all, or of one experiment."""
    if experiment_id:
        return _read(connection, _UNFINALIZED_OF_EXPERIMENT, experiment_id=experiment_id)
    return _read(connection, _UNFINALIZED)


def signalled(connection: Connection) -> list[Run]:
    """Reads every run on this cluster that was not settled and has a signal, oldest first."""
    return _read(connection, _SIGNALLED)


def unmanaged(connection: Connection) -> list[Run]:
    """Reads every run outside of the cluster that has not ended, oldest first."""
    return _read(connection, _UNMANAGED)


def _read(connection: Connection, query: sa.Select[Any], **values: Any) -> list[Run]:
    return [_from_row(row) for row in connection.execute(query, values)]


def update(connection: Connection, allocation_id: str, **values: Any) -> None:
    """Changes columns of a run."""
    connection.execute(sa.update(runs).where(runs.c.allocation_id == allocation_id).values(**values))


def end_holds(connection: Connection, experiment_id: str) -> None:
    """Lets the files of all runs of an experiment go that are held."""
    held = sa.and_(runs.c.experiment_id == experiment_id, runs.c.held_until.is_not(None))
    connection.execute(sa.update(runs).where(held).values(held_until=None))


def note_left_out(connection: Connection, run: Run, texts: Iterable[str]) -> None:
    """Adds what was left out of the reports of a container, for people, as far as there is room."""
    added = [text[:_LEFT_OUT_LENGTH] for text in islice(texts, _MOST_LEFT_OUT)]
    if added:
        update(connection, run.allocation_id, left_out=[*run.left_out, *added][:_MOST_LEFT_OUT])


def containers_of(connection: Connection, allocation_id: str) -> list[Container]:
    """Reads an allocation's containers by rank."""
    return [_container(row) for row in connection.execute(_CONTAINERS, {"allocation_id": allocation_id})]


def container(connection: Connection, allocation_id: str, rank: int) -> Container:
    """Reads one container.

    Raises:
        NotFoundError: The allocation has none of this rank.
    """
    for candidate in containers_of(connection, allocation_id):
        if candidate.container_rank == rank:
            return candidate
    raise NotFoundError(f"allocation {allocation_id} has no container {rank}")


def update_container(connection: Connection, allocation_id: str, rank: int, **values: Any) -> None:
    """Changes columns of a container."""
    connection.execute(
        sa.update(containers)
        .where(containers.c.allocation_id == allocation_id, containers.c.container_rank == rank)
        .values(**values)
    )


def mark_stragglers(connection: Connection, *, allocation_id: str, silent: Collection[int] = ()) -> None:
    """Notes of the containers that go on that they are about to be ended, for another of them has failed.

    Args:
        connection: A transaction.
        allocation_id: The allocation.
        silent: Ranks of those that are taken for lost.
    """
    going_on = sa.not_(containers.c.exited) & sa.not_(containers.c.lost)
    condition = (containers.c.allocation_id == allocation_id) & going_on
    condition &= containers.c.container_rank.not_in(silent)
    connection.execute(sa.update(containers).where(condition).values(straggler=True))


def _from_row(row: sa.Row[Any]) -> Run:
    values = dict(row._mapping)
    values["outcome"] = RunOutcome(values["outcome"])
    values["slot_ids"] = tuple(values["slot_ids"])
    values["log_policies"] = tuple(values["log_policies"])
    values["left_out"] = tuple(values["left_out"])
    return Run(**values)


def _container(row: sa.Row[Any]) -> Container:
    values = dict(row._mapping)
    values["slot_ids"] = tuple(values["slot_ids"])
    values["ports"] = tuple(values["ports"])
    return Container(**values)


def record_environment(connection: Connection, allocation_id: str, content: bytes) -> None:
    """Keeps the software and the machines of a run, equal ones once; the first of a run stands.

    Args:
        connection: A transaction.
        allocation_id: The allocation of the run.
        content: A serialized ``RunEnvironment``; equal ones must have equal bytes.
    """
    unrecorded = sa.and_(runs.c.allocation_id == allocation_id, runs.c.environment_digest.is_(None))
    # Looked at first: reports that count for nothing must leave nothing behind.
    if connection.execute(sa.select(runs.c.allocation_id).where(unrecorded)).one_or_none() is None:
        return
    digest = hashlib.sha256(content).hexdigest()
    insert_new(connection, environments, {"digest": digest, "content": content})
    connection.execute(sa.update(runs).where(unrecorded).values(environment_digest=digest))


def read_environment(connection: Connection, allocation_id: str) -> bytes | None:
    """Reads the environment of a run; None when none was recorded."""
    query = (
        sa.select(environments.c.content)
        .join(runs, runs.c.environment_digest == environments.c.digest)
        .where(runs.c.allocation_id == allocation_id)
    )
    return connection.execute(query).scalar_one_or_none()


def record_machine_usage(connection: Connection, run: Run, rank: int, content: bytes) -> None:
    """Keeps what the machine of a container did, in place of what was kept before.

    Args:
        connection: A transaction.
        run: The run.
        rank: The container.
        content: A serialized ``MachineUsage``.
    """
    key = {"allocation_id": run.allocation_id, "container_rank": rank}
    row = {**key, "experiment_id": run.experiment_id, "content": content}
    if not insert_new(connection, machine_usage, row):
        table = machine_usage.c
        mine = sa.and_(table.allocation_id == run.allocation_id, table.container_rank == rank)
        connection.execute(sa.update(machine_usage).where(mine).values(content=content))


def read_machine_usage(connection: Connection, allocation_id: str) -> dict[int, bytes]:
    """Reads what the machines of a run did, by the rank of its container."""
    table = machine_usage.c
    query = sa.select(table.container_rank, table.content).where(table.allocation_id == allocation_id)
    return {
        rank: bytes(content) for rank, content in connection.execute(query.order_by(table.container_rank))
    }
