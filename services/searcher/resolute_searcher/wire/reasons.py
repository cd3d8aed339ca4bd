"""Converts reasons to and from the stored messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from resolute.storage.searcher.v1 import log_pb2 as pb
from resolute_searcher.log.reasons import NOT_RECORDED, Reason, ReasonKind

_Explained: TypeAlias = pb.Event | pb.Operation | pb.Action
_NUMBERS: Mapping[ReasonKind, Any] = {
    kind: pb.ReasonKind.Value(f"REASON_KIND_{kind.name}") for kind in ReasonKind
}
_KINDS: Mapping[int, ReasonKind] = {number: kind for kind, number in _NUMBERS.items()}
_DETAILS = tuple(field.name for field in fields(Reason) if field.name != "kind")


def reason_from(message: _Explained) -> Reason:
    """Converts the reason of an event, operation or action; ``NOT_RECORDED`` before 0.1.0."""
    if not message.HasField("reason"):
        return NOT_RECORDED
    reason = message.reason
    details = {field.name: value for field, value in reason.ListFields() if field.name != "kind"}
    return Reason(_KINDS.get(reason.kind, ReasonKind.NOT_RECORDED), **details)


def set_reason(message: _Explained, reason: Reason) -> None:
    """Sets the reason in a message of an event, operation or action, unless it was never recorded."""
    if reason is NOT_RECORDED:
        return
    written = message.reason
    written.kind = _NUMBERS[reason.kind]
    for name in _DETAILS:
        value = getattr(reason, name)
        if value is not None:
            setattr(written, name, value)
