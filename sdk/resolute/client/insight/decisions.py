"""The decisions of a search, with the recorded reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from resolute.api.searcher.v1 import event_pb2, operation_pb2
from resolute.client.schema.reasons import ReasonRecord, reason
from resolute.contracts.messages import datetime_field


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEvent:
    """An event of a search."""

    sequence: int
    """Position in its log."""
    time: datetime | None
    kind: str
    """As the contract names it, such as ``validation_completed``."""
    trial: int | None
    """Number of the trial that it is about; None for none, or one that is not known yet."""
    metric: float | None
    """The reported value, of validations."""
    length: float | None
    """Where it was reported."""
    reason: ReasonRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision about a trial or about the search."""

    event: SearchEvent
    """What caused it."""
    kind: str
    """As the contract names it: ``create``, ``validate_after``, ``close``, ``stop``, ``promote``, or
    ``shutdown``."""
    trial: int | None
    """Number of the trial; None for none, or one that was never created."""
    length: int | None
    """The length to train to, of ``validate_after``."""
    reason: ReasonRecord


def decisions(entries: Iterable[event_pb2.LogEntry], numbers: Mapping[str, int]) -> Iterator[Decision]:
    """Yields the decisions of a log, in order.

    Args:
        entries: Of the log.
        numbers: The numbers of trials, by their keys.
    """
    for entry in entries:
        event = search_event(entry.event, numbers)
        for operation in entry.operations:
            kind = operation.WhichOneof("kind") or "unknown"
            if kind != "progress":
                yield Decision(
                    event=event,
                    kind=kind,
                    trial=numbers.get(trial_key(operation)),
                    length=operation.validate_after.length if kind == "validate_after" else None,
                    reason=reason(operation.reason),
                )


def search_event(event: event_pb2.Event, numbers: Mapping[str, int]) -> SearchEvent:
    """Converts an event."""
    kind = event.WhichOneof("kind") or "unknown"
    metric = length = None
    if kind == "validation_completed":
        metric, length = event.validation_completed.metric, float(event.validation_completed.length)
    elif kind == "validation_reported":
        metric, length = event.validation_reported.metric, event.validation_reported.time_metric
    return SearchEvent(
        sequence=event.sequence,
        time=datetime_field(event, "append_time"),
        kind=kind,
        trial=numbers.get(trial_key(event)),
        metric=metric,
        length=length,
        reason=reason(event.reason),
    )


def trial_key(message: event_pb2.Event | operation_pb2.Operation) -> str:
    """Names the trial that an event or an operation is about; empty for none."""
    kind = message.WhichOneof("kind")
    return getattr(getattr(message, kind), "trial_key", "") if kind else ""
