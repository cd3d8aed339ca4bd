"""Stores a batch of lines in one transaction, which also advances the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.api.logs.v1 import line_pb2
from resolute_logs.ingest.parsing import Batch, ParsedLine
from resolute_logs.store.schema import INTAKE, LINE_BYTES, closures
from resolute_serving.ingestion.byte_limits import ByteLimits, Usage, room_of, used

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


_ORIGIN = "logs"
DROPPED = "lines of this log"
"""Names lines in notes on those that were dropped."""


def ingest(
    connection: Connection,
    batch: Batch,
    *,
    limits: ByteLimits,
    workspace: int = 0,
    workspace_room: int | None = None,
) -> int:
    """Stores the new lines of a batch, up to the limits; a line states how many were dropped.

    Args:
        connection: Writes.
        batch: Lines of one source.
        limits: How much a trial may store.
        workspace: Number of its workspace; zero when it is not known.
        workspace_room: What its workspace may still store; None for no limit.

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
    run, new = batch.origin.run, batch.lines[stored:]
    sizes = [LINE_BYTES + len(line[-1].encode()) for line in new]
    room = left = room_of(admission.usage, limits, workspace_room=workspace_room)
    count = 0
    while count < len(new) and left.takes(sizes[count]):
        left = left.without(sizes[count])
        count += 1
    usage = used(
        admission.usage,
        room,
        stored=sum(sizes[:count]),
        dropped=len(new) - count,
        dropped_bytes=sum(sizes[count:]),
    )
    _insert(connection, admission.trial_key, run, new[:count])
    if usage.is_worth_telling:
        usage = tell(connection, admission.trial_key, usage, run=run, time_ns=new[-1][0])
    INTAKE.save_usage(connection, admission.trial_key, usage, workspace=workspace)
    connection.execute(_REOPEN, {"trial": batch.origin.trial_id})
    INTAKE.advance(connection, admission, batch.end)
    return batch.end


def tell(connection: Connection, trial_key: int, usage: Usage, *, run: int, time_ns: int) -> Usage:
    """Adds a line with the number of dropped lines.

    Args:
        connection: Writes.
        trial_key: The trial.
        usage: What was dropped of it.
        run: Run that the line counts to.
        time_ns: When, in nanoseconds since 1970.

    Returns:
        The usage, with the drops that the log reports now.
    """
    text = f"WARNING: {usage.explain(DROPPED)}"
    line: ParsedLine = (time_ns, line_pb2.LEVEL_WARNING, None, "", _ORIGIN, "", "", text)
    _insert(connection, trial_key, run, [line])
    return replace(usage, last_reported=usage.dropped)


def _insert(connection: Connection, trial_key: int, run: int, lines: Sequence[ParsedLine]) -> None:
    if not lines:
        return
    if connection.dialect.name == "postgresql":
        names = "times", "levels", "ranks", "stdtypes", "origins", "containers", "agents", "messages"
        columns = {name: list(values) for name, values in zip(names, zip(*lines, strict=True), strict=True)}
        connection.execute(_INSERT_POSTGRESQL, {"trial_key": trial_key, "run": run, **columns})
    else:
        connection.exec_driver_sql(_INSERT_SQLITE, [(trial_key, run, *line) for line in lines])
