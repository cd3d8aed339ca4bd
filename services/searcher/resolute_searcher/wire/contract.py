"""Converts between the messages of the contract and the stored ones.

Both have the same structure. Fields of equal meaning have equal names, except for those listed below; their
numbers may differ. A field that is absent in a message of the contract is zero or empty in a stored one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence
from typing import TypeVar

from google.protobuf.message import Message

from resolute.api.searcher.v1 import action_pb2, event_pb2, operation_pb2, reason_pb2
from resolute.storage.searcher.v1 import log_pb2

M = TypeVar("M", bound=Message)

_CONTRACT_NAMES: Mapping[tuple[str, str], str] = {
    ("Event", "time"): "append_time",
    ("Event", "sealed"): "trial_fenced",
    ("ValidationReported", "time"): "time_metric",
    ("OperationsPosted", "triggered_by_sequence"): "answered_sequence",
}
"""What the contract calls a field, by the stored message (of the contract's name) and the stored field."""
_CONTRACT_MESSAGES = {"Sealed": "TrialFenced", "LoggedEvent": "LogEntry"}
_TRIAL_KEY = "request_id"
"""What stored messages call the key of a trial."""


def contract_name(message: str, field: str) -> str:
    """Returns the contract's name of a stored field.

    Args:
        message: Name of the stored message.
        field: Name of the stored field.
    """
    return "trial_key" if field == _TRIAL_KEY else _CONTRACT_NAMES.get((message, field), field)


_STORED_NAMES = {
    (_CONTRACT_MESSAGES.get(message, message), name): field
    for (message, field), name in _CONTRACT_NAMES.items()
}


def _stored_name(message: str, field: str) -> str:
    return _TRIAL_KEY if field == "trial_key" else _STORED_NAMES.get((message, field), field)


def stored_event_kind(kind: str) -> str:
    """Returns the stored name of a kind of event."""
    return _stored_name("Event", kind)


def stored_event(message: event_pb2.Event) -> log_pb2.Event:
    """Returns the stored form of an event that a caller sent."""
    return _copy(message, log_pb2.Event(), to_contract=False)


def stored_operation(message: operation_pb2.Operation) -> log_pb2.Operation:
    """Returns the stored form of a posted operation, without a reason, which clients cannot set."""
    stored = _copy(message, log_pb2.Operation(), to_contract=False)
    stored.ClearField("reason")
    return stored


def stored_extension(message: event_pb2.Event.Extended) -> log_pb2.Event.Extended:
    """Returns the stored form of an extension that a caller sent."""
    return _copy(message, log_pb2.Event.Extended(), to_contract=False)


def contract_event(message: log_pb2.Event) -> event_pb2.Event:
    """Returns the contract's message of a stored event."""
    return _explained(_copy(message, event_pb2.Event(), to_contract=True))


def contract_operation(message: log_pb2.Operation) -> operation_pb2.Operation:
    """Returns the contract's message of a stored operation."""
    return _explained(_copy(message, operation_pb2.Operation(), to_contract=True))


def contract_actions(messages: Iterable[log_pb2.Action]) -> list[action_pb2.Action]:
    """Returns the contract's messages of stored actions."""
    return [_explained(_copy(message, action_pb2.Action(), to_contract=True)) for message in messages]


def contract_entry(message: log_pb2.LoggedEvent) -> event_pb2.LogEntry:
    """Returns the contract's message of a stored entry."""
    return event_pb2.LogEntry(
        event=contract_event(message.event),
        operations=map(contract_operation, message.operations),
        actions=contract_actions(message.actions),
    )


Explained = TypeVar("Explained", event_pb2.Event, operation_pb2.Operation, action_pb2.Action)


def _explained(message: Explained) -> Explained:
    """Marks the reason of older entries, which have none, as not recorded."""
    if not message.HasField("reason"):
        message.reason.kind = reason_pb2.REASON_KIND_NOT_RECORDED
    return message


def _copy(source: Message, target: M, *, to_contract: bool) -> M:
    """Copies every set field into the corresponding field."""
    rename = contract_name if to_contract else _stored_name
    message = source.DESCRIPTOR.name
    for field, value in source.ListFields():
        name = rename(message, field.name)
        if isinstance(value, Message):
            _copy_message(value, getattr(target, name), to_contract=to_contract)
        elif isinstance(value, Mapping):
            entries = getattr(target, name)
            for key, one in value.items():
                _copy_message(one, entries[key], to_contract=to_contract)
        elif isinstance(value, MutableSequence):
            _extend(getattr(target, name), value, to_contract=to_contract)
        else:
            setattr(target, name, value)
    return target


def _extend(target: MutableSequence, values: MutableSequence, *, to_contract: bool) -> None:  # type: ignore[type-arg]
    for value in values:
        if isinstance(value, Message):
            _copy_message(value, target.add(), to_contract=to_contract)  # type: ignore[attr-defined]
        else:
            target.append(value)


def _copy_message(source: Message, target: Message, *, to_contract: bool) -> None:
    if source.DESCRIPTOR is target.DESCRIPTOR:
        target.CopyFrom(source)
        return
    target.SetInParent()
    _copy(source, target, to_contract=to_contract)
