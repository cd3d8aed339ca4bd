"""The software and the machines of runs; equal ones are kept once."""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import environments, runs


def record(connection: Connection, allocation_id: str, content: bytes) -> None:
    """Keeps the environment of a run; the first one of a run stands.

    Args:
        connection: A transaction.
        allocation_id: The allocation of the run.
        content: A serialized ``RunEnvironment``; equal ones must have equal bytes.
    """
    digest = hashlib.sha256(content).hexdigest()
    known = sa.select(environments.c.digest).where(environments.c.digest == digest)
    if connection.execute(known).one_or_none() is None:
        connection.execute(sa.insert(environments).values(digest=digest, content=content))
    connection.execute(
        sa.update(runs)
        .where(runs.c.allocation_id == allocation_id, runs.c.environment_digest.is_(None))
        .values(environment_digest=digest)
    )


def of_run(connection: Connection, allocation_id: str) -> bytes | None:
    """Reads the environment of a run; None when none was recorded."""
    query = (
        sa.select(environments.c.content)
        .join(runs, runs.c.environment_digest == environments.c.digest)
        .where(runs.c.allocation_id == allocation_id)
    )
    return connection.execute(query).scalar_one_or_none()
