"""Users, templates and the audit trail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.schema import audit, templates, users
from resolute_serving.context import Role, User, actor


@dataclass(frozen=True)
class Template:
    """A part of a config that can be merged under others."""

    name: str
    config: dict[str, Any]


def ensure_user(connection: Connection, user: User, *, now: float) -> None:
    """Writes a user, unless the name is known."""
    if connection.execute(sa.select(users.c.name).where(users.c.name == user.name)).one_or_none() is None:
        connection.execute(sa.insert(users).values(name=user.name, role=user.role.value, created_at=now))


def get_user(connection: Connection, name: str) -> User:
    """Reads a user.

    Raises:
        NotFoundError: There is none of this name.
    """
    row = connection.execute(sa.select(users).where(users.c.name == name)).one_or_none()
    if row is None:
        known = ", ".join(connection.execute(sa.select(users.c.name).order_by(users.c.name)).scalars())
        raise NotFoundError(f"user {name!r} does not exist; there are: {known}", resource=f"user {name}")
    return User(name=row.name, role=Role(row.role))


def set_template(connection: Connection, template: Template, *, now: float) -> None:
    """Writes a template, in place of one of the same name."""
    connection.execute(sa.delete(templates).where(templates.c.name == template.name))
    connection.execute(
        sa.insert(templates).values(name=template.name, config=template.config, updated_at=now)
    )


def get_template(connection: Connection, name: str) -> Template:
    """Reads a template.

    Raises:
        NotFoundError: There is none of this name.
    """
    row = connection.execute(sa.select(templates).where(templates.c.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(
            f"template {name!r} does not exist; `resolute template list` shows those that do",
            resource=f"template {name}",
        )
    return Template(name=row.name, config=row.config)


def list_templates(connection: Connection, *, after: str, limit: int) -> list[Template]:
    """Reads templates by name."""
    query = sa.select(templates).where(templates.c.name > after).order_by(templates.c.name).limit(limit)
    return [Template(name=row.name, config=row.config) for row in connection.execute(query)]


def delete_template(connection: Connection, name: str) -> None:
    """Removes a template.

    Raises:
        NotFoundError: There is none of this name.
    """
    get_template(connection, name)
    connection.execute(sa.delete(templates).where(templates.c.name == name))


def record(connection: Connection, action: str, resource: str, *, now: float, **detail: Any) -> None:
    """Writes an audit row beside the change that it tells of."""
    connection.execute(
        sa.insert(audit).values(time=now, actor=actor(), action=action, resource=resource, detail=detail)
    )
