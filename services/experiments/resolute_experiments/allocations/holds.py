"""How long the files of failed runs are held, and whether there is space for them."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_experiments.store import runs
from resolute_experiments.store.schema import experiments
from resolute_experiments.store.schema import runs as runs_table


@dataclass(frozen=True, slots=True)
class Hold:
    """The held files of a run."""

    until: float
    """Unix time."""
    most_bytes: int
    """More is not held."""


_HOLD = (
    sa.select(runs_table.c.held_until, experiments.c.config["on_failure"].label("on_failure"))
    .join(experiments, experiments.c.id == runs_table.c.experiment_id)
    .where(runs_table.c.allocation_id == sa.bindparam("allocation_id"), runs_table.c.held_until.is_not(None))
)


def of_run(connection: Connection, allocation_id: str) -> Hold | None:
    """Reads what is held of a run; None for nothing."""
    row = connection.execute(_HOLD, {"allocation_id": allocation_id}).one_or_none()
    return None if row is None else Hold(row.held_until, row.on_failure["hold_size"])


def end(connection: Connection, allocation_id: str) -> None:
    """Notes that nothing is held of a run any more."""
    runs.update(connection, allocation_id, held_until=None)
