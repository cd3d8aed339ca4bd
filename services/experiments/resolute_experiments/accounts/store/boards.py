"""Boards of projects, each with its versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    NotFoundError,
)
from resolute_experiments.store.schema import board_versions, boards, projects
from resolute_experiments.store.schema import workspaces as workspace_table
from resolute_serving.pagination import Ordering

MAX_BOARDS = 200
"""Most boards of a project."""
KEPT_VERSIONS = 100
"""Most versions of a board; the earliest are removed."""
ORDERING = Ordering(
    {"name": boards.c.name, "update_time": board_versions.c.created_at},
    unique=boards.c.number,
    default="name",
)
"""How lists of boards may be ordered."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a board: exactly one of two forms."""

    path: str | None = None
    """A view of the page."""
    report: str | None = None
    """A text in Markdown."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """One version of a board."""

    number: int
    """The board's id."""
    project_number: int
    project: str
    """Name of its project."""
    workspace_number: int
    """Id of the project's workspace."""
    workspace: str
    """Name of the project's workspace."""
    name: str
    content: Content
    version: int
    author: str
    """Name of anyone who made this version."""
    created_at: float


def put(
    connection: Connection,
    *,
    project: int,
    number: int,
    name: str,
    content: Content,
    based_on: int,
    author: str,
    now: float,
) -> int:
    """Writes a board, or a new version of one; returns its id.

    Args:
        connection: A write transaction.
        project: Id of the project.
        number: The board; 0 for a new one.
        name: Its name from now on.
        content: What it shows from now on.
        based_on: The version that must be the latest; 0 for any.
        author: Who does it.
        now: Unix time.

    Raises:
        NotFoundError: There is no such board in the project.
        ConflictError: Another version is the latest.
        AlreadyExistsError: Another board of the project has the name.
        FailedPreconditionError: The project has no room for another board.
    """
    before = get(connection, project=project, number=number) if number else None
    if before and based_on and based_on != before.version:
        raise ConflictError(
            f"board {before.name!r} is at version {before.version} by {before.author}, and this change is "
            f"based on version {based_on}: read it again",
            resource=f"board {number}",
        )
    named = sa.select(boards.c.number).where(boards.c.project_number == project, boards.c.name == name)
    if connection.execute(named).scalar() not in (None, number):
        raise AlreadyExistsError(
            f"the project has a board {name!r} already; choose another name", resource=name
        )
    version = before.version + 1 if before else 1
    if before is None:
        number = _create(connection, project, name)
    else:
        of_board = boards.c.number == number
        connection.execute(sa.update(boards).where(of_board).values(name=name, version=version))
    connection.execute(
        sa.insert(board_versions).values(
            board_number=number,
            version=version,
            name=name,
            path=content.path,
            report=content.report,
            author=author,
            created_at=now,
        )
    )
    old = board_versions.c.board_number == number, board_versions.c.version <= version - KEPT_VERSIONS
    connection.execute(sa.delete(board_versions).where(*old))
    return number


def get(connection: Connection, *, project: int, number: int, version: int = 0) -> Board:
    """Reads a version of a board; 0 for the latest.

    Raises:
        NotFoundError: There is none in the project.
    """
    query = all_versions().where(boards.c.project_number == project, boards.c.number == number)
    query = query.where(board_versions.c.version == (version or boards.c.version))
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        wanted = f"version {version} of board {number}" if version else f"board {number}"
        raise NotFoundError(
            f"{wanted} does not exist in the project; it may have been deleted", resource=f"board {number}"
        )
    return board(row)


def versions(connection: Connection, number: int) -> list[Board]:
    """Reads all versions of a board that are kept, the latest first, without what they show."""
    query = all_versions(shown=False).where(boards.c.number == number)
    return [
        board(row) for row in connection.execute(query.order_by(board_versions.c.version.desc())).mappings()
    ]


def latest() -> sa.Select[Any]:
    """Selects the latest version of each board, without its report."""
    return all_versions(shown=False).where(board_versions.c.version == boards.c.version)


def all_versions(*, shown: bool = True) -> sa.Select[Any]:
    """Selects the versions of boards.

    Args:
        shown: Whether with their reports.
    """
    report = board_versions.c.report if shown else sa.case((board_versions.c.report.is_not(None), ""))
    return (
        sa.select(
            boards.c.number,
            boards.c.project_number,
            projects.c.name.label("project"),
            projects.c.workspace,
            workspace_table.c.number.label("workspace_number"),
            board_versions.c.name,
            board_versions.c.path,
            report.label("report"),
            board_versions.c.version,
            board_versions.c.author,
            board_versions.c.created_at,
        )
        .join(board_versions, board_versions.c.board_number == boards.c.number)
        .join(projects, projects.c.number == boards.c.project_number)
        .join(workspace_table, workspace_table.c.name == projects.c.workspace)
    )


def board(row: Mapping[Any, Any]) -> Board:
    """Reads a row of ``all_versions``."""
    return Board(
        number=row["number"],
        project_number=row["project_number"],
        project=row["project"],
        workspace=row["workspace"],
        workspace_number=row["workspace_number"],
        name=row["name"],
        content=Content(path=row["path"], report=row["report"]),
        version=row["version"],
        author=row["author"],
        created_at=row["created_at"],
    )


def delete(connection: Connection, number: int) -> None:
    """Removes a board with all its versions."""
    connection.execute(sa.delete(board_versions).where(board_versions.c.board_number == number))
    connection.execute(sa.delete(boards).where(boards.c.number == number))


def delete_all(connection: Connection, projects_of: sa.Select[Any]) -> None:
    """Removes the boards of some projects.

    Args:
        connection: A write transaction.
        projects_of: Selects the ids of the projects.
    """
    held = sa.select(boards.c.number).where(boards.c.project_number.in_(projects_of))
    connection.execute(sa.delete(board_versions).where(board_versions.c.board_number.in_(held)))
    connection.execute(sa.delete(boards).where(boards.c.project_number.in_(projects_of)))


def _create(connection: Connection, project: int, name: str) -> int:
    held = sa.select(sa.func.count()).where(boards.c.project_number == project)
    if connection.execute(held).scalar_one() >= MAX_BOARDS:
        raise FailedPreconditionError(f"the project has {MAX_BOARDS} boards; delete one first")
    insert = sa.insert(boards).values(project_number=project, name=name, version=1)
    return int(connection.execute(insert.returning(boards.c.number)).scalar_one())
