"""Projects: groups of experiments within a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from resolute_experiments.accounts.store import boards, usage, workspaces
from resolute_experiments.store.schema import experiments, projects, users
from resolute_experiments.store.schema import workspaces as workspace_table
from resolute_serving.pagination import Ordering

ORDERING = Ordering(
    {"name": projects.c.name, "create_time": projects.c.created_at}, unique=projects.c.number, default="name"
)
"""How lists of projects may be ordered."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """One row of ``projects``."""

    number: int
    """The project's id."""
    workspace: str
    """Name of its workspace."""
    workspace_number: int
    """Id of its workspace."""
    name: str
    description: str
    notes: str
    owner: str
    """Name of anyone who created it."""
    owner_number: int | None
    """Id of the owner; None when that is no user."""
    archived: bool
    created_at: float
    revision: int


def ensure_uncategorized(connection: Connection, *, owner: str, now: float) -> None:
    """Writes the workspace and the project of experiments that name none, unless they are there."""
    name = workspaces.UNCATEGORIZED
    if workspaces.find(connection, name) is None:
        workspaces.create(connection, name, owner=owner, now=now)
    if find(connection, name, name) is None:
        create(connection, name, name, description="", notes="", owner=owner, now=now)


def create(
    connection: Connection, workspace: str, name: str, *, description: str, notes: str, owner: str, now: float
) -> Project:
    """Writes a new project.

    Raises:
        NotFoundError: The workspace does not exist.
        AlreadyExistsError: The name is taken in this workspace.
    """
    workspaces.get(connection, name=workspace)
    _check_free(connection, workspace, name)
    connection.execute(
        sa.insert(projects).values(
            workspace=workspace,
            name=name,
            description=description,
            notes=notes,
            owner=owner,
            archived=False,
            created_at=now,
        )
    )
    return get(connection, workspace=workspace, name=name)


def find(connection: Connection, workspace: str, name: str) -> Project | None:
    """Reads a project by its names; None when there is none."""
    query = all_projects().where(projects.c.workspace == workspace, projects.c.name == name)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else project(row)


def get(connection: Connection, *, number: int = 0, workspace: str = "", name: str = "") -> Project:
    """Reads a project by id, or by its names.

    Raises:
        NotFoundError: There is none.
    """
    query = (
        all_projects().where(projects.c.workspace == workspace, projects.c.name == name)
        if name
        else all_projects().where(projects.c.number == number)
    )
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        where = f" in workspace {workspace!r}" if name else ""
        raise NotFoundError(
            f"project {name or number!r} does not exist{where}",
            resource=f"project {name or number}",
        )
    return project(row)


def all_projects() -> sa.Select[Any]:
    """Selects all projects, with the ids of their workspaces and owners."""
    return (
        sa.select(
            projects,
            workspace_table.c.number.label("workspace_number"),
            users.c.number.label("owner_number"),
        )
        .join(workspace_table, workspace_table.c.name == projects.c.workspace)
        .outerjoin(users, users.c.name == projects.c.owner)
    )


def project(row: Mapping[Any, Any]) -> Project:
    """Reads a row of ``all_projects``."""
    return Project(
        number=row["number"],
        workspace=row["workspace"],
        workspace_number=row["workspace_number"],
        name=row["name"],
        description=row["description"],
        notes=row["notes"],
        owner=row["owner"],
        owner_number=row["owner_number"],
        archived=row["archived"],
        created_at=row["created_at"],
        revision=row["revision"],
    )


def update(
    connection: Connection, before: Project, *, name: str, description: str, notes: str, archived: bool
) -> Project:
    """Sets a project's name and texts, and whether it is archived.

    Raises:
        AlreadyExistsError: The new name is taken in its workspace.
        FailedPreconditionError: It is the one of experiments that name none, which stays as it is.
    """
    if before.name == before.workspace == workspaces.UNCATEGORIZED and (archived or name != before.name):
        raise FailedPreconditionError(
            f"project {before.name!r} takes the experiments that name none; it can be neither renamed "
            "nor archived"
        )
    if name != before.name:
        _check_free(connection, before.workspace, name)
        held = experiments.c.workspace == before.workspace, experiments.c.project == before.name
        connection.execute(
            sa.update(experiments).where(*held).values(project=name, revision=experiments.c.revision + 1)
        )
    connection.execute(
        sa.update(projects)
        .where(projects.c.number == before.number)
        .values(
            name=name,
            description=description,
            notes=notes,
            archived=archived,
            revision=projects.c.revision + 1,
        )
    )
    return get(connection, number=before.number)


def _check_free(connection: Connection, workspace: str, name: str) -> None:
    if find(connection, workspace, name) is not None:
        raise AlreadyExistsError(
            f"project {name!r} exists already in workspace {workspace!r}; choose another name", resource=name
        )


def delete(connection: Connection, project: Project) -> None:
    """Removes a project.

    Raises:
        FailedPreconditionError: It holds experiments, or is the one of experiments that name none.
    """
    count = usage.experiments_of_projects(connection, [project.number])[project.number]
    default = project.name if project.workspace == workspaces.UNCATEGORIZED else ""
    workspaces.check_removable(f"project {project.name!r}", default, count)
    boards.delete_all(connection, sa.select(projects.c.number).where(projects.c.number == project.number))
    connection.execute(sa.delete(projects).where(projects.c.number == project.number))
