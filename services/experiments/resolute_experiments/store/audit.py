"""The audit trail: who changed what."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import audit, users
from resolute_serving.context import User, actor, current_principal
from resolute_serving.pagination import Ordering

ORDERING = Ordering({"time": audit.c.time}, unique=audit.c.position, default="time desc")
"""How lists of audit rows may be ordered."""


def record(connection: Connection, action: str, resource: str, *, now: float, **detail: Any) -> None:
    """Writes an audit row beside the change that it tells of."""
    connection.execute(
        sa.insert(audit).values(
            time=now,
            actor=actor(),
            action=action,
            resource=resource,
            detail=detail,
            user_number=_caller(connection),
        )
    )


def _caller(connection: Connection) -> int | None:
    """The id of the calling user, also for tokens that do not name it."""
    principal = current_principal.get()
    if not isinstance(principal, User):
        return None
    query = sa.select(users.c.number).where(users.c.name == principal.name)
    return principal.user_id or connection.execute(query).scalar_one_or_none()
