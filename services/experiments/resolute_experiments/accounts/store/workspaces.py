"""Workspaces and their quotas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from resolute_experiments.accounts.store import boards, secrets, usage
from resolute_experiments.store import alerts
from resolute_experiments.store.schema import (
    config_policies,
    experiments,
    projects,
    users,
    workspace_roles,
    workspaces,
)
from resolute_serving.database.engine import insert_new
from resolute_serving.database.prepared import PreparedStatement
from resolute_serving.pagination import Ordering

UNCATEGORIZED = "Uncategorized"
"""The workspace, and the project in it, of experiments that name none."""

ORDERING = Ordering(
    {"name": workspaces.c.name, "create_time": workspaces.c.created_at},
    unique=workspaces.c.number,
    default="name",
)
"""How lists of workspaces may be ordered."""


@dataclass(frozen=True)
class Quota:
    """The bounds for all experiments of a workspace together. Zero means no bound."""

    live_experiments: int = 0
    """Experiments that have not ended."""
    slots: int = 0
    """Slots in use at the same time."""
    storage_bytes: int = 0
    """Bytes of checkpoints."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """One row of ``workspaces``."""

    number: int
    """The workspace's id."""
    name: str
    owner: str
    """Name of anyone who created it."""
    owner_number: int | None
    """Id of the owner; None when that is no user."""
    archived: bool
    created_at: float
    live_experiments: int
    slots: int
    storage_bytes: int
    revision: int

    @property
    def quota(self) -> Quota:
        """What it may use."""
        return Quota(self.live_experiments, self.slots, self.storage_bytes)


def create(connection: Connection, name: str, *, owner: str, now: float) -> Workspace:
    """Writes a new workspace, without bounds.

    Raises:
        AlreadyExistsError: The name is taken.
    """
    row = {"name": name, "owner": owner, "archived": False, "created_at": now, "live_experiments": 0}
    if not insert_new(connection, workspaces, {**row, "slots": 0}):
        raise _taken(name)
    return get(connection, name=name)


def find(connection: Connection, name: str) -> Workspace | None:
    """Reads a workspace by name; None when there is none."""
    row = _BY_NAME.mapping(connection, {"name": name})
    return None if row is None else workspace(row)


def get(connection: Connection, *, number: int = 0, name: str = "") -> Workspace:
    """Reads a workspace by id or by name.

    Raises:
        NotFoundError: There is none.
    """
    if name:
        row = _BY_NAME.mapping(connection, {"name": name})
    else:
        row = _BY_NUMBER.mapping(connection, {"number": number})
    if row is None:
        raise _missing(name or number)
    return workspace(row)


def with_quotas(connection: Connection, number: int | None = None) -> list[Workspace]:
    """Reads the workspaces that have a quota, or one of them."""
    table = workspaces.c
    query = ALL.where(sa.or_(table.live_experiments > 0, table.slots > 0, table.storage_bytes > 0))
    if number is not None:
        query = query.where(table.number == number)
    return [workspace(row) for row in connection.execute(query).mappings()]


def require(connection: Connection, numbers: Collection[int]) -> None:
    """Makes sure that workspaces exist.

    Raises:
        NotFoundError: There is none of an id.
    """
    if not numbers:
        return
    query = sa.select(workspaces.c.number).where(workspaces.c.number.in_(numbers))
    known = set(connection.execute(query).scalars())
    for number in numbers:
        if number not in known:
            raise _missing(number)


def of_experiment(connection: Connection, experiment_id: str) -> Workspace:
    """Reads the workspace of an experiment."""
    return workspace(connection.execute(_OF_EXPERIMENT, {"experiment_id": experiment_id}).mappings().one())


ALL = sa.select(workspaces, users.c.number.label("owner_number")).outerjoin(
    users, users.c.name == workspaces.c.owner
)
"""All workspaces, with the ids of their owners."""
_BY_NAME = PreparedStatement(ALL.where(workspaces.c.name == sa.bindparam("name")))
_BY_NUMBER = PreparedStatement(ALL.where(workspaces.c.number == sa.bindparam("number")))
_OF_EXPERIMENT = ALL.join(experiments, experiments.c.workspace == workspaces.c.name).where(
    experiments.c.id == sa.bindparam("experiment_id")
)


def workspace(row: Mapping[Any, Any]) -> Workspace:
    """Reads a row of ``ALL``."""
    return Workspace(
        number=row["number"],
        name=row["name"],
        owner=row["owner"],
        owner_number=row["owner_number"],
        archived=row["archived"],
        created_at=row["created_at"],
        live_experiments=row["live_experiments"],
        slots=row["slots"],
        storage_bytes=row["storage_bytes"],
        revision=row["revision"],
    )


def update(connection: Connection, before: Workspace, *, name: str, archived: bool) -> Workspace:
    """Sets a workspace's name, and whether it is archived.

    Raises:
        AlreadyExistsError: The new name is taken.
        FailedPreconditionError: It is the one of experiments that name none, which stays as it is.
    """
    if before.name == UNCATEGORIZED and (archived or name != before.name):
        raise FailedPreconditionError(
            f"workspace {before.name!r} takes the experiments that name none; it can be neither renamed "
            "nor archived"
        )
    if name != before.name:
        _check_free(connection, name)
        connection.execute(
            sa.update(projects).where(projects.c.workspace == before.name).values(workspace=name)
        )
        connection.execute(
            sa.update(experiments)
            .where(experiments.c.workspace == before.name)
            .values(workspace=name, revision=experiments.c.revision + 1)
        )
    return _set(connection, before, name=name, archived=archived)


def set_quota(connection: Connection, before: Workspace, quota: Quota) -> Workspace:
    """Sets all bounds."""
    return _set(
        connection,
        before,
        live_experiments=quota.live_experiments,
        slots=quota.slots,
        storage_bytes=quota.storage_bytes,
    )


def delete(connection: Connection, workspace: Workspace) -> None:
    """Removes a workspace with its projects.

    Raises:
        FailedPreconditionError: It holds experiments, or is the one of experiments that name none.
    """
    count = usage.of_workspaces(connection, [workspace.name])[workspace.name].experiments
    check_removable(f"workspace {workspace.name!r}", workspace.name, count)
    own_projects = projects.c.workspace == workspace.name
    boards.delete_all(connection, sa.select(projects.c.number).where(own_projects))
    connection.execute(sa.delete(projects).where(own_projects))
    roles = workspace_roles.c.workspace_number == workspace.number
    connection.execute(sa.delete(workspace_roles).where(roles))
    secrets.delete_all(connection, secrets.Holder(workspace_number=workspace.number))
    alerts.delete(connection, workspace.number)
    own_policies = config_policies.c.workspace_number == workspace.number
    connection.execute(sa.delete(config_policies).where(own_policies))
    connection.execute(sa.delete(workspaces).where(workspaces.c.number == workspace.number))


def _set(connection: Connection, before: Workspace, **values: Any) -> Workspace:
    connection.execute(
        sa.update(workspaces)
        .where(workspaces.c.number == before.number)
        .values(**values, revision=workspaces.c.revision + 1)
    )
    return get(connection, number=before.number)


def _missing(key: str | int) -> NotFoundError:
    return NotFoundError(f"workspace {key!r} does not exist", resource=f"workspace {key}")


def _check_free(connection: Connection, name: str) -> None:
    if find(connection, name) is not None:
        raise _taken(name)


def _taken(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"workspace {name!r} exists already; choose another name", resource=name)


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
