"""The trials whose logs are complete."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_logs.store.schema import closures
from resolute_serving.database.engine import insert_new


def mark_complete(connection: Connection, trial_id: str) -> None:
    """Marks the log of a trial as complete, until another line arrives."""
    insert_new(connection, closures, {"trial_id": trial_id})


def is_complete(connection: Connection, trial_id: str) -> bool:
    """Returns whether the log of a trial is complete."""
    query = sa.select(closures.c.trial_id).where(closures.c.trial_id == trial_id)
    return connection.execute(query).scalar_one_or_none() is not None
