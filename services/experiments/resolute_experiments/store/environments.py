"""The software and the machines of runs; equal ones are kept once."""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import environments, runs
from resolute_serving.database.engine import insert_new


def record(connection: Connection, allocation_id: str, content: bytes) -> None:
    """Keeps the environment of a run; the first one of a run stands.

    Args:
        connection: A transaction.
        allocation_id: The allocation of the run.
        content: A serialized ``RunEnvironment``; equal ones must have equal bytes.
    """
    unrecorded = sa.and_(runs.c.allocation_id == allocation_id, runs.c.environment_digest.is_(None))
    # Looked at first: reports that count for nothing must leave nothing behind.
    if connection.execute(sa.select(runs.c.allocation_id).where(unrecorded)).one_or_none() is None:
        return
    digest = hashlib.sha256(content).hexdigest()
    insert_new(connection, environments, {"digest": digest, "content": content})
    connection.execute(sa.update(runs).where(unrecorded).values(environment_digest=digest))


def of_run(connection: Connection, allocation_id: str) -> bytes | None:
    """Reads the environment of a run; None when none was recorded."""
    query = (
        sa.select(environments.c.content)
        .join(runs, runs.c.environment_digest == environments.c.digest)
        .where(runs.c.allocation_id == allocation_id)
    )
    return connection.execute(query).scalar_one_or_none()
