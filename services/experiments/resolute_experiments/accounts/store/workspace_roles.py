"""Roles of users in single workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import users, workspace_roles, workspaces
from resolute_serving.context import Role
from resolute_serving.database.prepared import insert_one
from resolute_serving.pagination import Ordering

ORDERING = Ordering(
    {
        "user_name": users.c.name,
        "workspace_name": workspaces.c.name,
        "update_time": workspace_roles.c.updated_at,
    },
    unique=workspace_roles.c.number,
    default="user_name",
)
"""How lists of roles may be ordered."""


@dataclass(frozen=True, kw_only=True)
class WorkspaceRole:
    """One row of ``workspace_roles``, with the names of its user and workspace."""

    user_number: int
    user_name: str
    workspace_number: int
    workspace_name: str
    role: Role
    updated_at: float


_ROLE = sa.select(workspace_roles.c.role).where(
    workspace_roles.c.user_number == sa.bindparam("user"),
    workspace_roles.c.workspace_number == sa.bindparam("workspace"),
)
_OF_USER = sa.select(workspace_roles.c.workspace_number, workspace_roles.c.role).where(
    workspace_roles.c.user_number == sa.bindparam("user")
)


def assign(connection: Connection, *, user: int, workspace: int, role: Role, now: float) -> bool:
    """Gives a user a role in a workspace, in place of another; returns whether that changed anything."""
    key = {"user": user, "workspace": workspace}
    before = connection.execute(_ROLE, key).scalar_one_or_none()
    if before == role.value:
        return False
    if before is None:
        insert(connection, **key, role=role, now=now)
    else:
        table = workspace_roles
        changed = sa.update(table).where(_row(user, workspace))
        connection.execute(changed.values(role=role.value, updated_at=now))
    return True


def insert(connection: Connection, *, user: int, workspace: int, role: Role, now: float) -> None:
    """Gives a user who has none a role in a workspace."""
    row = {"user_number": user, "workspace_number": workspace, "role": role.value, "updated_at": now}
    insert_one(connection, workspace_roles, row)


def remove(connection: Connection, *, user: int, workspace: int) -> bool:
    """Takes a user's role in a workspace away; returns whether there was one."""
    return connection.execute(sa.delete(workspace_roles).where(_row(user, workspace))).rowcount > 0


def of_user(connection: Connection, user: int) -> Mapping[int, Role]:
    """The roles of a user by the ids of workspaces."""
    return {number: Role(role) for number, role in connection.execute(_OF_USER, {"user": user})}


def get(connection: Connection, *, user: int, workspace: int) -> WorkspaceRole:
    """Reads a role that is there."""
    return workspace_role(connection.execute(all_roles().where(_row(user, workspace))).mappings().one())


def all_roles() -> sa.Select[Any]:
    """Selects all roles, with the names of users and workspaces."""
    return (
        sa.select(workspace_roles, users.c.name.label("user_name"), workspaces.c.name.label("workspace_name"))
        .join(users, users.c.number == workspace_roles.c.user_number)
        .join(workspaces, workspaces.c.number == workspace_roles.c.workspace_number)
    )


def workspace_role(row: Mapping[Any, Any]) -> WorkspaceRole:
    """Reads a row of ``all_roles``."""
    return WorkspaceRole(
        user_number=row["user_number"],
        user_name=row["user_name"],
        workspace_number=row["workspace_number"],
        workspace_name=row["workspace_name"],
        role=Role(row["role"]),
        updated_at=row["updated_at"],
    )


def _row(user: int, workspace: int) -> sa.ColumnElement[bool]:
    table = workspace_roles
    return sa.and_(table.c.user_number == user, table.c.workspace_number == workspace)
