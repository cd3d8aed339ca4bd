"""Workspaces, and what they may use."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from resolute_experiments.states import LIVE_EXPERIMENTS, RunOutcome
from resolute_experiments.store.schema import experiments, projects, runs, workspaces

UNCATEGORIZED = "Uncategorized"
"""The workspace, and the project in it, of experiments that name none."""


@dataclass(frozen=True)
class Quota:
    """What the experiments of a workspace may use together, or do use; as a bound, zero is none."""

    live_experiments: int = 0
    """Experiments that have not ended."""
    slots: int = 0
    """Slots in use at the same time."""
    storage_bytes: int = 0
    """Bytes of checkpoints. Others know how many are used: here that is zero."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """One row of ``workspaces``."""

    number: int
    name: str
    owner: str
    archived: bool
    created_at: float
    live_experiments: int
    slots: int
    storage_bytes: int

    @property
    def quota(self) -> Quota:
        """What it may use."""
        return Quota(self.live_experiments, self.slots, self.storage_bytes)


def create(connection: Connection, name: str, *, owner: str, now: float) -> Workspace:
    """Writes a new workspace, without bounds.

    Raises:
        AlreadyExistsError: The name is taken.
    """
    if find(connection, name) is not None:
        raise AlreadyExistsError(f"workspace {name!r} exists already; choose another name", resource=name)
    connection.execute(
        sa.insert(workspaces).values(
            name=name, owner=owner, archived=False, created_at=now, live_experiments=0, slots=0
        )
    )
    return get(connection, name=name)


def find(connection: Connection, name: str) -> Workspace | None:
    """Reads a workspace by its name; None when there is none."""
    query = sa.select(workspaces).where(workspaces.c.name == name)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else Workspace(**row)


def get(connection: Connection, *, number: int = 0, name: str = "") -> Workspace:
    """Reads a workspace by its number or its name.

    Raises:
        NotFoundError: There is none.
    """
    wanted = workspaces.c.name == name if name else workspaces.c.number == number
    row = connection.execute(sa.select(workspaces).where(wanted)).mappings().one_or_none()
    if row is None:
        raise NotFoundError(
            f"workspace {name or number!r} does not exist; `resolute workspace list` shows those that do, "
            f"`resolute workspace create` makes one",
            resource=f"workspace {name or number}",
        )
    return Workspace(**row)


def page(connection: Connection, *, after: str, limit: int) -> list[Workspace]:
    """Reads workspaces by name."""
    query = sa.select(workspaces).where(workspaces.c.name > after).order_by(workspaces.c.name).limit(limit)
    return [Workspace(**row) for row in connection.execute(query).mappings()]


def archive(connection: Connection, workspace: Workspace, *, archived: bool) -> None:
    """Archives a workspace or opens it again."""
    connection.execute(
        sa.update(workspaces).where(workspaces.c.number == workspace.number).values(archived=archived)
    )


def set_quota(connection: Connection, workspace: Workspace, quota: Quota) -> None:
    """Sets all bounds."""
    connection.execute(
        sa.update(workspaces)
        .where(workspaces.c.number == workspace.number)
        .values(live_experiments=quota.live_experiments, slots=quota.slots, storage_bytes=quota.storage_bytes)
    )


def delete(connection: Connection, workspace: Workspace) -> None:
    """Removes a workspace with its projects.

    Raises:
        FailedPreconditionError: It holds experiments, or is the one of experiments that name none.
    """
    count = experiment_count(connection, workspace.name)
    check_removable(f"workspace {workspace.name!r}", workspace.name, count)
    connection.execute(sa.delete(projects).where(projects.c.workspace == workspace.name))
    connection.execute(sa.delete(workspaces).where(workspaces.c.number == workspace.number))


def used(connection: Connection, name: str) -> Quota:
    """What the experiments of a workspace use now."""
    live = [state.value for state in LIVE_EXPERIMENTS]
    living = sa.select(sa.func.count()).select_from(experiments)
    held = (
        sa.select(runs.c.slot_ids)
        .join(experiments, experiments.c.id == runs.c.experiment_id)
        .where(experiments.c.workspace == name, runs.c.outcome == RunOutcome.UNSPECIFIED.value)
    )
    return Quota(
        connection.execute(
            living.where(experiments.c.workspace == name, experiments.c.state.in_(live))
        ).scalar_one(),
        sum(len(slots) for slots in connection.execute(held).scalars()),
    )


def experiment_count(connection: Connection, workspace: str, project: str = "") -> int:
    """Counts the experiments of a workspace, or of one project in it."""
    query = sa.select(sa.func.count()).where(experiments.c.workspace == workspace)
    if project:
        query = query.where(experiments.c.project == project)
    return int(connection.execute(query).scalar_one())


def project_count(connection: Connection, workspace: str) -> int:
    """Counts the projects of a workspace."""
    query = sa.select(sa.func.count()).where(projects.c.workspace == workspace)
    return int(connection.execute(query).scalar_one())


def check_removable(label: str, name: str, count: int) -> None:
    """Refuses to remove what holds experiments, or takes those that name none.

    Args:
        label: How messages name it.
        name: Its name.
        count: Experiments in it.

    Raises:
        FailedPreconditionError: It has to stay.
    """
    if name == UNCATEGORIZED:
        raise FailedPreconditionError(f"{label} takes the experiments that name none, so it stays")
    if count:
        raise FailedPreconditionError(
            f"{label} holds {count} experiments; delete them, or move them with `resolute experiment move`"
        )
