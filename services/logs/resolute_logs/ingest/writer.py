"""Stores a batch of lines: one transaction in which the source moves on."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_logs.ingest.parsing import Batch, ParsedLine
from resolute_logs.store.schema import INTAKE, closures

_COLUMNS = "trial_key, run, time_ns, level, rank, stdtype, origin, container, agent, message"
_INSERT_SQLITE = f"INSERT INTO lines ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constants
# One statement for a whole batch: the driver would take longer to send each line by itself.
_INSERT_POSTGRESQL = sa.text(
    f"INSERT INTO lines ({_COLUMNS}) "  # noqa: S608 - constants
    "SELECT :trial_key, :run, one.time_ns, one.level, one.rank, one.stdtype, one.origin, one.container, "
    "one.agent, one.message FROM unnest(CAST(:times AS bigint[]), CAST(:levels AS smallint[]), "
    "CAST(:ranks AS int[]), CAST(:stdtypes AS text[]), CAST(:origins AS text[]), "
    "CAST(:containers AS text[]), CAST(:agents AS text[]), CAST(:messages AS text[])) WITH ORDINALITY "
    "AS one(time_ns, level, rank, stdtype, origin, container, agent, message, place) ORDER BY one.place"
)
_REOPEN = closures.delete().where(closures.c.trial_id == sa.bindparam("trial"))


def ingest(connection: Connection, batch: Batch) -> int:
    """Stores what is new of a batch.

    Args:
        connection: Writes.
        batch: Lines of one source.

    Returns:
        The sequence below which every line of the source is durable.

    Raises:
        FailedPreconditionError: Lines before the batch are missing.
        InvalidArgumentError: The trial belongs to another experiment.
    """
    # The lock on the trial that this takes also makes keys of lines ascend in the order of commits, which
    # followers rely on.
    admission = INTAKE.admit(connection, batch.origin)
    if admission is None:
        return batch.end
    stored = admission.stored_count(batch.first_sequence)
    if stored >= len(batch.lines):
        return admission.next_sequence
    _insert(connection, admission.trial_key, batch.origin.run, batch.lines[stored:])
    connection.execute(_REOPEN, {"trial": batch.origin.trial_id})
    INTAKE.advance(connection, admission, batch.end)
    return batch.end


def _insert(connection: Connection, trial_key: int, run: int, lines: Sequence[ParsedLine]) -> None:
    if connection.dialect.name == "postgresql":
        names = "times", "levels", "ranks", "stdtypes", "origins", "containers", "agents", "messages"
        columns = {name: list(values) for name, values in zip(names, zip(*lines, strict=True), strict=True)}
        connection.execute(_INSERT_POSTGRESQL, {"trial_key": trial_key, "run": run, **columns})
    else:
        connection.exec_driver_sql(_INSERT_SQLITE, [(trial_key, run, *line) for line in lines])
