"""Projects: where experiments are kept within a workspace."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import AlreadyExistsError, NotFoundError
from resolute_experiments.store import workspaces
from resolute_experiments.store.schema import projects


@dataclass(frozen=True, kw_only=True)
class Project:
    """One row of ``projects``."""

    number: int
    workspace: str
    name: str
    description: str
    notes: str
    owner: str
    archived: bool
    created_at: float


def ensure_uncategorized(connection: Connection, *, owner: str, now: float) -> None:
    """Writes the workspace and the project of experiments that name none, unless they are there."""
    name = workspaces.UNCATEGORIZED
    if workspaces.find(connection, name) is None:
        workspaces.create(connection, name, owner=owner, now=now)
    if find(connection, name, name) is None:
        create(connection, name, name, description="", owner=owner, now=now)


def create(
    connection: Connection, workspace: str, name: str, *, description: str, owner: str, now: float
) -> Project:
    """Writes a new project.

    Raises:
        NotFoundError: The workspace does not exist.
        AlreadyExistsError: The name is taken in this workspace.
    """
    workspaces.get(connection, name=workspace)
    if find(connection, workspace, name) is not None:
        raise AlreadyExistsError(
            f"project {name!r} exists already in workspace {workspace!r}; choose another name", resource=name
        )
    connection.execute(
        sa.insert(projects).values(
            workspace=workspace,
            name=name,
            description=description,
            notes="",
            owner=owner,
            archived=False,
            created_at=now,
        )
    )
    return get(connection, workspace=workspace, name=name)


def find(connection: Connection, workspace: str, name: str) -> Project | None:
    """Reads a project by its names; None when there is none."""
    query = sa.select(projects).where(projects.c.workspace == workspace, projects.c.name == name)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else Project(**row)


def get(connection: Connection, *, number: int = 0, workspace: str = "", name: str = "") -> Project:
    """Reads a project by its number, or by its names.

    Raises:
        NotFoundError: There is none.
    """
    query = sa.select(projects)
    query = (
        query.where(projects.c.workspace == workspace, projects.c.name == name)
        if name
        else query.where(projects.c.number == number)
    )
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        where = f" in workspace {workspace!r}" if name else ""
        raise NotFoundError(
            f"project {name or number!r} does not exist{where}; `resolute project list WORKSPACE` shows "
            f"those that do, `resolute project create` makes one",
            resource=f"project {name or number}",
        )
    return Project(**row)


def page(connection: Connection, workspace: str, *, after: str, limit: int) -> list[Project]:
    """Reads the projects of a workspace by name."""
    query = (
        sa.select(projects)
        .where(projects.c.workspace == workspace, projects.c.name > after)
        .order_by(projects.c.name)
        .limit(limit)
    )
    return [Project(**row) for row in connection.execute(query).mappings()]


def update(connection: Connection, project: Project, *, description: str, notes: str, archived: bool) -> None:
    """Sets a project's texts and whether it takes experiments."""
    connection.execute(
        sa.update(projects)
        .where(projects.c.number == project.number)
        .values(description=description, notes=notes, archived=archived)
    )


def delete(connection: Connection, project: Project) -> None:
    """Removes a project.

    Raises:
        FailedPreconditionError: It holds experiments, or is the one of experiments that name none.
    """
    count = workspaces.experiment_count(connection, project.workspace, project.name)
    default = project.name if project.workspace == workspaces.UNCATEGORIZED else ""
    workspaces.check_removable(f"project {project.name!r}", default, count)
    connection.execute(sa.delete(projects).where(projects.c.number == project.number))
