"""Removes an experiment's lines in batches, so that no transaction blocks others for long."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_logs.store.closures import mark_complete
from resolute_logs.store.schema import INTAKE, LINE_BYTES, lines

_LINES_AT_ONCE = 20_000


def delete_expired(connection: Connection, *, before: float) -> bool:
    """Removes some lines that were written before a Unix time.

    It looks at those that came first, so that it never reads the whole table. Sources keep their place in the
    sequence: a spool that comes again brings nothing back.

    Returns:
        Whether more may be left.
    """
    first = sa.select(lines.c.line_id).order_by(lines.c.line_id).limit(_LINES_AT_ONCE)
    old = lines.c.line_id.in_(first), lines.c.time_ns < int(before * 1e9)
    size = sa.func.sum(sa.func.length(lines.c.message) + LINE_BYTES)
    sizes = connection.execute(sa.select(lines.c.trial_key, size).where(*old).group_by(lines.c.trial_key))
    INTAKE.give_back(connection, {key: int(total) for key, total in sizes})
    return connection.execute(lines.delete().where(*old)).rowcount == _LINES_AT_ONCE


def delete_part(connection: Connection, trial: int) -> bool:
    """Removes a part of the lines of a trial.

    Returns:
        Whether more may be left.
    """
    some = sa.select(lines.c.line_id).where(lines.c.trial_key == trial).limit(_LINES_AT_ONCE)
    removed = connection.execute(lines.delete().where(lines.c.line_id.in_(some))).rowcount
    if removed == _LINES_AT_ONCE:
        return True
    # Its followers learn that nothing more will come.
    trials = INTAKE.trials
    query = sa.select(trials.c.trial_id).where(trials.c.trial_key == trial)
    mark_complete(connection, connection.execute(query).scalar_one())
    return False
