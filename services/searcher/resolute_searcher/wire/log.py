"""Converts log entries to and from the stored messages."""

from __future__ import annotations

from resolute.storage.searcher.v1 import log_pb2 as pb
from resolute_searcher.identifiers import trial_id
from resolute_searcher.log.entry import Entry
from resolute_searcher.wire.actions import action_from, action_to
from resolute_searcher.wire.events import event_from, event_to
from resolute_searcher.wire.operations import operation_from, operation_to
from resolute_searcher.wire.reasons import reason_from, set_reason


def entry_to(entry: Entry, *, search_id: str, event_id: str, time: float) -> pb.LoggedEvent:
    """Converts a log entry to its message.

    Args:
        entry: The entry.
        search_id: UUID of the search.
        event_id: Identifies the event across retries.
        time: When it was appended, in seconds since 1970.
    """
    logged = pb.LoggedEvent(
        event=event_to(entry.event),
        operations=[operation_to(operation) for operation in entry.operations],
        actions=[action_to(action, search_id=search_id) for action in entry.actions],
    )
    event = logged.event
    event.sequence = entry.sequence
    event.event_id = event_id
    set_reason(event, entry.reason)
    micros = round(time * 1e6)
    event.time.seconds, event.time.nanos = micros // 1_000_000, micros % 1_000_000 * 1000
    first = entry.last_action - len(entry.actions) + 1
    for sequence, action in enumerate(logged.actions, start=first):
        action.sequence = sequence
        action.event_sequence = entry.sequence
    return logged


def entry_from(message: pb.LoggedEvent, *, search_id: str, last_action: int, draws: int) -> Entry:
    """Converts the message of a log entry.

    Args:
        message: What `entry_to` wrote.
        search_id: UUID of the search.
        last_action: Position of the last of all actions up to this entry.
        draws: Random words that the search had taken after it.
    """
    event = event_from(message.event)
    operations = tuple(operation_from(operation) for operation in message.operations)
    # Actions name trials as everyone else does; each is of a trial that the event or an operation names.
    keys = (
        {
            trial_id(search_id, one.trial_key): one.trial_key
            for one in (event, *operations)
            if hasattr(one, "trial_key")
        }
        if message.actions
        else {}
    )
    return Entry(
        sequence=message.event.sequence,
        event=event,
        operations=operations,
        actions=tuple(action_from(action, keys) for action in message.actions),
        last_action=last_action,
        draws=draws,
        reason=reason_from(message.event),
    )
