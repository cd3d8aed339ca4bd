"""The audit trail: one row for each change, written in the transaction of the change."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_checkpoints.store.schema import audit


def record(
    connection: Connection, *, action: str, target: str, actor: str, now: float, **detail: Any
) -> None:
    """Records one change.

    Args:
        connection: The caller's transaction.
        action: What was done, such as ``checkpoint.commit``.
        target: UUID of what it was done to.
        actor: Who did it.
        now: Seconds since 1970.
        detail: What else explains the change; JSON-able.
    """
    connection.execute(
        sa.insert(audit).values(
            time=now,
            actor=actor,
            action=action,
            object=target,
            detail=json.dumps(detail, sort_keys=True, ensure_ascii=False),
        )
    )
