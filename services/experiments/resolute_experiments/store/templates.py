"""Templates: parts of configs that can be merged below other configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.store.schema import templates
from resolute_serving.pagination import Ordering

ORDERING = Ordering(
    {"name": templates.c.name, "update_time": templates.c.updated_at},
    unique=templates.c.name,
    default="name",
)
"""How lists of templates may be ordered."""


@dataclass(frozen=True, kw_only=True)
class Template:
    """One row of ``templates``."""

    name: str
    config: dict[str, Any]
    updated_at: float


def write(connection: Connection, written: Template) -> None:
    """Writes a template; replaces one of the same name."""
    connection.execute(sa.delete(templates).where(templates.c.name == written.name))
    connection.execute(
        sa.insert(templates).values(name=written.name, config=written.config, updated_at=written.updated_at)
    )


def get(connection: Connection, name: str) -> Template:
    """Reads a template.

    Raises:
        NotFoundError: There is none of this name.
    """
    row = connection.execute(sa.select(templates).where(templates.c.name == name)).mappings().one_or_none()
    if row is None:
        raise NotFoundError(
            f"template {name!r} does not exist; `resolute template list` lists all templates",
            resource=f"template {name}",
        )
    return template(row)


def delete(connection: Connection, name: str) -> None:
    """Removes a template.

    Raises:
        NotFoundError: There is none of this name.
    """
    get(connection, name)
    connection.execute(sa.delete(templates).where(templates.c.name == name))


def template(row: Mapping[Any, Any]) -> Template:
    """Reads a row."""
    return Template(name=row["name"], config=row["config"], updated_at=row["updated_at"])
