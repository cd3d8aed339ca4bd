"""The reasons why trials wait, as the scheduler's last pass decided: at most one row for each experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store.schema import wait_reasons as table

_BATCH = 500
"""Parameters of one statement."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """The reason why some trials of an experiment wait. Its other trials wait behind those of others."""

    reason: str
    trial_id: str = ""
    """UUID of the trial that was next, which waits for this; empty when all of the experiment's trials do."""


def read(connection: Connection) -> dict[str, Wait]:
    """Reads what is recorded, by the UUID of the experiment."""
    return {
        row.experiment_id: Wait(reason=row.reason, trial_id=row.trial_id)
        for row in connection.execute(sa.select(table))
    }


def write(connection: Connection, waits: Mapping[str, Wait]) -> None:
    """Makes these the recorded ones; rows that are the same already are left alone.

    Args:
        connection: A transaction.
        waits: Every reason, by the UUID of the experiment.
    """
    known = read(connection)
    changed = [name for name, wait in waits.items() if known.get(name) != wait]
    outdated = [*(known.keys() - waits.keys()), *(known.keys() & set(changed))]
    for start in range(0, len(outdated), _BATCH):
        chosen = table.c.experiment_id.in_(outdated[start : start + _BATCH])
        connection.execute(sa.delete(table).where(chosen))
    rows = [
        {"experiment_id": name, "trial_id": waits[name].trial_id, "reason": waits[name].reason}
        for name in changed
    ]
    if rows:
        connection.execute(sa.insert(table), rows)
