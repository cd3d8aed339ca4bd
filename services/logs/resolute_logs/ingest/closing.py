"""Closes a log. If dropped lines are not reported yet, a last line reports them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_logs.ingest.writer import tell
from resolute_logs.store.closures import mark_complete
from resolute_logs.store.schema import INTAKE, lines


def close(connection: Connection, trial_id: str, *, now: float) -> None:
    """Marks the log of a trial as complete, until another line comes.

    Args:
        connection: Writes.
        trial_id: The trial; maybe one that never wrote a line.
        now: Unix time.
    """
    locked = INTAKE.lock_usage(connection, trial_id)
    if locked is not None and locked[1].dropped > locked[1].last_reported:
        trial_key, usage = locked
        last = sa.select(sa.func.max(lines.c.run)).where(lines.c.trial_key == trial_key)
        run = connection.execute(last).scalar_one() or 0
        usage = tell(connection, trial_key, usage, run=run, time_ns=int(now * 1e9))
        INTAKE.save_usage(connection, trial_key, usage, workspace=0)
    mark_complete(connection, trial_id)
