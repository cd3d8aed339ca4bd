"""Runs with their allocations: slots, containers, signals."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.states import RunOutcome
from resolute_experiments.store.schema.runs import Container as Container  # noqa: PLC0414 - also for callers
from resolute_experiments.store.schema.runs import Run as Run  # noqa: PLC0414 - also for callers
from resolute_experiments.store.schema.runs import containers, environments, runs
from resolute_serving.database.engine import insert_new


def insert(
    connection: Connection,
    values: dict[str, Any],
    *,
    placements: Sequence[Sequence[int]],
    nodes: Sequence[int] = (),
) -> None:
    """Writes a run with one container for each placement.

    Args:
        connection: Where to.
        values: The columns of the run.
        placements: Slots of each container.
        nodes: Node of each container; the first for all when empty.
    """
    connection.execute(sa.insert(runs).values(**values))
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


def get(connection: Connection, allocation_id: str) -> Run:
    """Reads a run by its allocation.

    Raises:
        NotFoundError: There is none.
    """
    row = connection.execute(sa.select(runs).where(runs.c.allocation_id == allocation_id)).one_or_none()
    if row is None:
        raise NotFoundError(
            f"allocation {allocation_id} does not exist; its experiment may have been deleted",
            resource=f"allocation {allocation_id}",
        )
    return _from_row(row)


def of_trial(connection: Connection, trial_id: str) -> list[Run]:
    """Reads a trial's runs in order."""
    return [
        _from_row(row)
        for row in connection.execute(sa.select(runs).where(runs.c.trial_id == trial_id).order_by(runs.c.run))
    ]


def of_trials(connection: Connection, trial_ids: Sequence[str]) -> dict[str, list[Run]]:
    """Reads the runs of some trials, at most a page of them, by number; trials without runs are left out."""
    query = sa.select(runs).where(runs.c.trial_id.in_(trial_ids)).order_by(runs.c.trial_id, runs.c.run)
    found: dict[str, list[Run]] = {}
    for row in connection.execute(query):
        found.setdefault(row.trial_id, []).append(_from_row(row))
    return found


def trials_of(connection: Connection, experiment_id: str, allocations: Sequence[str]) -> frozenset[str]:
    """Names the trials of an experiment that some allocations were for."""
    query = sa.select(runs.c.trial_id).where(
        runs.c.experiment_id == experiment_id, runs.c.allocation_id.in_(allocations)
    )
    return frozenset(connection.execute(query).scalars())


def by_request(connection: Connection, request_id: str) -> Run | None:
    """Reads the run outside of the cluster that a request began, if it did."""
    row = connection.execute(sa.select(runs).where(runs.c.request_id == request_id)).one_or_none()
    return None if row is None else _from_row(row)


def unfinalized(connection: Connection, *, experiment_id: str = "") -> list[Run]:
    """Reads every run on this cluster that was not settled, oldest first; all, or of one experiment."""
    condition: sa.ColumnElement[bool] = runs.c.request_id.is_(None)
    if experiment_id:
        condition &= runs.c.experiment_id == experiment_id
    return _open(connection, condition)


def signalled(connection: Connection) -> list[Run]:
    """Reads every run on this cluster that was not settled and has a signal, oldest first."""
    return _open(connection, runs.c.request_id.is_(None) & (runs.c.signal_revision > 0))


def unmanaged(connection: Connection) -> list[Run]:
    """Reads every run outside of the cluster that has not ended, oldest first."""
    return _open(connection, runs.c.request_id.is_not(None))


def _open(connection: Connection, condition: sa.ColumnElement[bool]) -> list[Run]:
    query = sa.select(runs).where(runs.c.outcome == RunOutcome.UNSPECIFIED.value, condition)
    return [_from_row(row) for row in connection.execute(query.order_by(runs.c.started_at))]


def update(connection: Connection, allocation_id: str, **values: Any) -> None:
    """Changes columns of a run."""
    connection.execute(sa.update(runs).where(runs.c.allocation_id == allocation_id).values(**values))


def containers_of(connection: Connection, allocation_id: str) -> list[Container]:
    """Reads an allocation's containers by rank."""
    query = sa.select(containers).where(containers.c.allocation_id == allocation_id)
    return [_container(row) for row in connection.execute(query.order_by(containers.c.container_rank))]


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
