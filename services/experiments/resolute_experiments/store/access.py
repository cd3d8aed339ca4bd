"""Templates and the audit trail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.store.schema import audit, templates
from resolute_serving.context import actor


@dataclass(frozen=True)
class Template:
    """A part of a config that can be merged under others."""

    name: str
    config: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class AuditRow:
    """A change that somebody made."""

    position: int
    time: float
    actor: str
    action: str
    resource: str
    detail: dict[str, Any]


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


def list_audit(
    connection: Connection, *, by: str, resource: str, before: int | None, limit: int
) -> list[AuditRow]:
    """Reads audit rows, newest first.

    Args:
        connection: A read transaction.
        by: Only this actor's; empty for all.
        resource: Only of this resource; empty for all.
        before: Only rows before this position.
        limit: The most rows.
    """
    query = sa.select(audit).order_by(audit.c.position.desc()).limit(limit)
    if by:
        query = query.where(audit.c.actor == by)
    if resource:
        query = query.where(audit.c.resource == resource)
    if before is not None:
        query = query.where(audit.c.position < before)
    return [AuditRow(**row) for row in connection.execute(query).mappings()]
