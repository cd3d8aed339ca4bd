"""The logs of searches, which are append-only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import (
    ConflictError,
)
from resolute.storage.searcher.v1 import log_pb2 as pb
from resolute_searcher.identifiers import trial_id
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.operations import Create
from resolute_searcher.state_machine.search import Search
from resolute_searcher.store.schema import entries, searches, trials
from resolute_searcher.store.search_rows import read_search, search_not_found
from resolute_searcher.wire.log import entry_from, entry_to
from resolute_serving.database.prepared import PreparedStatement, insert_many

OWN_EVENT_PREFIX = "#"
"""How identifiers begin that the log gives to events that came without one."""
_BATCH = 1000


class DuplicateEventError(Exception):
    """An event with this identifier is already in the log.

    Args:
        event_id: The identifier.
    """

    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} is in the log already")
        self.event_id = event_id


@dataclass(frozen=True, slots=True)
class LoggedEntry:
    """An entry that was read from a log.

    Attributes:
        entry: The entry.
        tip: Tip of the log after this entry.
    """

    entry: Entry
    tip: str


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry on its way into the log, with the counts after it.

    Attributes:
        entry: The entry.
        previous: Tip of the log that it was decided upon.
        tip: Tip of the log after this entry.
        event_id: Identifies the event across retries; empty for events that the search itself recognizes.
        now: Seconds since 1970.
        method_version: Name and version of the method that decided.
        requested: Trials asked for so far.
        closed: Trials closed so far.
        over: The search shut down.
    """

    entry: Entry
    previous: str
    tip: str
    event_id: str
    now: float
    method_version: str
    requested: int
    closed: int
    over: bool

    @classmethod
    def of(cls, search: Search, entry: Entry, *, previous: str, event_id: str, now: float) -> NewEntry:
        """Creates the row of an entry from the search that has just applied it."""
        return cls(
            entry=entry,
            previous=previous,
            tip=uuid4().hex,
            event_id=event_id,
            now=now,
            method_version=search.state.kind.label,
            requested=search.state.requested,
            closed=search.state.closed,
            over=search.state.over,
        )


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What a batch of entries brought.

    Attributes:
        actions: The actions as they are stored, in order.
        trials: Keys of the trials that were asked for.
    """

    actions: list[pb.Action]
    trials: list[str]


def append(connection: Connection, search_id: str, batch: Sequence[NewEntry]) -> AppendResult:
    """Appends entries to the end of a log, all or none.

    Args:
        connection: A transaction.
        search_id: The search.
        batch: The entries, each decided upon the one before it; at least one.

    Raises:
        ConflictError: The log does not end with the entry that the first was decided upon: another writer was
            first, or that entry was never written.
        DuplicateEventError: An event is in the log.
    """
    last = batch[-1]
    moved = _MOVE_TIP.run(
        connection,
        {
            "which": search_id,
            "previous": batch[0].previous,
            "tip": last.tip,
            "last_sequence": last.entry.sequence,
            "last_action": last.entry.last_action,
            "requested": last.requested,
            "closed": last.closed,
            "over": last.over,
        },
    )
    if moved != 1:
        raise ConflictError(f"search {search_id} has changed meanwhile; read it again")
    for new in batch:
        if new.event_id and has_event(connection, search_id, new.event_id):
            raise DuplicateEventError(new.event_id)
    messages = [_message(search_id, new) for new in batch]
    rows = [_entry_row(search_id, new, message) for new, message in zip(batch, messages, strict=True)]
    insert_many(connection, entries, rows)
    created = [
        operation.trial_key
        for new in batch
        for operation in new.entry.operations
        if isinstance(operation, Create)
    ]
    if created:
        insert_many(connection, trials, [_trial_row(search_id, trial_key) for trial_key in created])
    actions = [action for message in messages for action in message.actions]
    return AppendResult(actions=actions, trials=created)


def has_event(connection: Connection, search_id: str, event_id: str) -> bool:
    """Returns whether an event is in the log."""
    return _FIND_EVENT.first(connection, {"which": search_id, "event": event_id}) is not None


def _message(search_id: str, new: NewEntry) -> pb.LoggedEvent:
    event_id = new.event_id or f"{OWN_EVENT_PREFIX}{new.entry.sequence}"
    return entry_to(new.entry, search_id=search_id, event_id=event_id, time=new.now)


def _entry_row(search_id: str, new: NewEntry, message: pb.LoggedEvent) -> dict[str, Any]:
    entry = new.entry
    return {
        "search_id": search_id,
        "sequence": entry.sequence,
        "event_id": new.event_id,
        "method_version": new.method_version,
        "entry": message.SerializeToString(),
        "last_action": entry.last_action,
        "has_actions": bool(entry.actions),
        "draws": entry.draws,
        "tip": new.tip,
    }


def _trial_row(search_id: str, trial_key: str) -> dict[str, Any]:
    return {
        "trial_id": trial_id(search_id, trial_key),
        "search_id": search_id,
        "trial_key": trial_key,
        "progress": 0.0,
    }


def read_log(connection: Connection, search_id: str, *, after: int = 0) -> Iterator[LoggedEntry]:
    """Yields the entries of a log after a position, in order."""
    while True:
        rows = connection.execute(
            sa.select(
                entries.c.sequence, entries.c.entry, entries.c.last_action, entries.c.draws, entries.c.tip
            )
            .where(entries.c.search_id == search_id, entries.c.sequence > after)
            .order_by(entries.c.sequence)
            .limit(_BATCH)
        ).all()
        for row in rows:
            message = pb.LoggedEvent.FromString(row.entry)
            entry = entry_from(message, search_id=search_id, last_action=row.last_action, draws=row.draws)
            yield LoggedEntry(entry=entry, tip=row.tip)
        if len(rows) < _BATCH:
            return
        after = rows[-1].sequence


def catch_up(connection: Connection, search_id: str, *, after: int, tip: str) -> list[LoggedEntry]:
    """Reads the entries of other writers.

    Args:
        connection: A transaction.
        search_id: The search.
        after: Position of the last entry that is known, be it on its way to the log.
        tip: Its tip.

    Raises:
        NotFoundError: The search is gone.
        ConflictError: The log has another entry at that position.
    """
    row = connection.execute(
        sa.select(searches.c.last_sequence, searches.c.tip, searches.c.deleted_at).where(
            searches.c.search_id == search_id
        )
    ).one_or_none()
    if row is None or row.deleted_at is not None:
        raise search_not_found(search_id)
    if row.tip == tip or row.last_sequence < after:
        return []
    here = connection.execute(
        sa.select(entries.c.tip).where(entries.c.search_id == search_id, entries.c.sequence == after)
    ).scalar_one()
    if here != tip:
        raise ConflictError(f"search {search_id} has other entries meanwhile; read it again")
    return list(read_log(connection, search_id, after=after))


def read_logged(
    connection: Connection,
    search_id: str,
    *,
    after: int = 0,
    before: int | None = None,
    descending: bool = False,
    limit: int,
    max_bytes: int,
    sequences: Collection[int] = (),
) -> list[pb.LoggedEvent]:
    """Reads entries as messages: at least one if there is any, up to the limits.

    Args:
        connection: A transaction.
        search_id: The search.
        after: Only entries beyond this position.
        before: Only entries ahead of this position; None for all.
        descending: Whether the last comes first.
        limit: Most entries.
        max_bytes: Most bytes of entries.
        sequences: Only entries at these positions; empty for all.

    Raises:
        NotFoundError: There is no such search.
    """
    read_search(connection, search_id)
    query = sa.select(entries.c.entry).where(entries.c.search_id == search_id, entries.c.sequence > after)
    if sequences:
        query = query.where(entries.c.sequence.in_(sequences))
    if before is not None:
        query = query.where(entries.c.sequence < before)
    order = entries.c.sequence.desc() if descending else entries.c.sequence
    rows = connection.execute(query.order_by(order).limit(limit))
    return _within_bytes(rows.scalars(), max_bytes)


def read_actions(
    connection: Connection, search_id: str, *, after: int, limit: int, max_bytes: int
) -> list[pb.Action]:
    """Reads actions after a position, in order: whole entries, at least one if there is any.

    Raises:
        NotFoundError: There is no such search.
    """
    read_search(connection, search_id)
    rows = connection.execute(
        sa.select(entries.c.entry)
        .where(entries.c.search_id == search_id, entries.c.has_actions, entries.c.last_action > after)
        .order_by(entries.c.last_action)
        .limit(limit)
    )
    logged = _within_bytes(rows.scalars(), max_bytes)
    return [action for entry in logged for action in entry.actions if action.sequence > after]


# They run for every event.
_MOVE_TIP = PreparedStatement(
    sa.update(searches)
    .where(
        searches.c.search_id == sa.bindparam("which"),
        searches.c.tip == sa.bindparam("previous"),
        searches.c.deleted_at.is_(None),
    )
    .values(
        tip=sa.bindparam("tip"),
        last_sequence=sa.bindparam("last_sequence"),
        last_action=sa.bindparam("last_action"),
        requested=sa.bindparam("requested"),
        closed=sa.bindparam("closed"),
        over=sa.bindparam("over"),
    )
)
_FIND_EVENT = PreparedStatement(
    sa.select(entries.c.sequence).where(
        entries.c.search_id == sa.bindparam("which"),
        entries.c.event_id == sa.bindparam("event"),
        # As the index says it, or else it is not used.
        sa.text("event_id != ''"),
    )
)


def unacknowledged(connection: Connection) -> tuple[int, float | None]:
    """Counts the unacknowledged actions of running searches, and finds the time of the oldest.

    Returns:
        Their number, and Unix seconds; None without any.
    """
    lagging = connection.execute(
        sa.select(searches.c.search_id, searches.c.last_action, searches.c.acknowledged).where(
            searches.c.last_action > searches.c.acknowledged,
            sa.not_(searches.c.over),
            searches.c.deleted_at.is_(None),
        )
    ).all()
    times = []
    for row in lagging:
        first = connection.execute(
            sa.select(entries.c.entry)
            .where(
                entries.c.search_id == row.search_id,
                entries.c.has_actions,
                entries.c.last_action > row.acknowledged,
            )
            .order_by(entries.c.last_action)
            .limit(1)
        ).scalar_one()
        times.append(pb.LoggedEvent.FromString(first).event.time.ToMicroseconds() / 1e6)
    count = sum(row.last_action - row.acknowledged for row in lagging)
    return count, min(times, default=None)


def _within_bytes(blobs: Iterator[bytes] | sa.ScalarResult[bytes], max_bytes: int) -> list[pb.LoggedEvent]:
    logged: list[pb.LoggedEvent] = []
    size = 0
    for blob in blobs:
        size += len(blob)
        if logged and size > max_bytes:
            break
        logged.append(pb.LoggedEvent.FromString(blob))
    return logged
