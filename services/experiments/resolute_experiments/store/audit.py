"""The audit trail of changes and their users."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import audit, users
from resolute_serving.auth.refusals import CountedRefusal
from resolute_serving.context import User, actor, current_principal
from resolute_serving.database.prepared import insert_one
from resolute_serving.pagination import Ordering

ORDERING = Ordering({"time": audit.c.time}, unique=audit.c.position, default="time desc")
"""How lists of audit rows may be ordered."""
_USER_ID = sa.select(users.c.number).where(users.c.name == sa.bindparam("name"))
REFUSALS = ("login_failed", "login_limited", "unauthenticated", "permission_denied")
"""Actions of rows that tell of refusals."""


def record(connection: Connection, action: str, resource: str, *, now: float, **detail: Any) -> None:
    """Writes an audit row beside the change that it tells of."""
    row = {"time": now, "actor": actor(), "action": action, "resource": resource, "detail": detail}
    insert_one(connection, audit, {**row, "user_number": caller_id(connection)})


def record_refusal(connection: Connection, counted: CountedRefusal) -> None:
    """Writes a row for equal refusals."""
    refusal = counted.refusal
    connection.execute(
        sa.insert(audit).values(
            time=counted.time,
            actor=refusal.actor,
            action=refusal.action,
            resource=refusal.resource,
            detail={"peer": refusal.peer, "count": counted.count},
            user_number=refusal.user_id,
        )
    )


def trim_refusals(connection: Connection, *, before: float, most: int) -> None:
    """Removes the oldest rows of refusals; rows of changes stay.

    Args:
        connection: The transaction.
        before: Unix time; older rows are removed.
        most: How many rows are kept.
    """
    refused = audit.c.action.in_(REFUSALS)
    connection.execute(sa.delete(audit).where(refused, audit.c.time < before))
    surplus = (
        sa.select(audit.c.position).where(refused).order_by(audit.c.position.desc()).offset(most).limit(1)
    )
    last = connection.execute(surplus).scalar_one_or_none()
    if last is not None:
        connection.execute(sa.delete(audit).where(refused, audit.c.position <= last))


def caller_id(connection: Connection) -> int | None:
    """The id of the calling user, also for tokens that do not name it; None for other callers."""
    principal = current_principal.get()
    if not isinstance(principal, User):
        return None
    if principal.user_id:
        return principal.user_id
    return connection.execute(_USER_ID, {"name": principal.name}).scalar_one_or_none()
