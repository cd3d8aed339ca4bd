"""Entries of a log in brief: columns of what each one did to which trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.storage.searcher.v1 import log_pb2 as pb

MAX_MOVES = 50_000
"""Most moves of one answer that has several entries: with the keys of as many trials they are 3 MB."""
_EVENTS: Mapping[str, service_pb.MoveKind.ValueType] = {
    "validation_completed": service_pb.MOVE_KIND_COMPLETED,
    "validation_reported": service_pb.MOVE_KIND_REPORTED,
    "trial_exited": service_pb.MOVE_KIND_EXITED,
    "retried": service_pb.MOVE_KIND_RETRIED,
}
_OPERATIONS: Mapping[str, service_pb.MoveKind.ValueType] = {
    "create": service_pb.MOVE_KIND_CREATE,
    "validate_after": service_pb.MOVE_KIND_TRAIN,
    "promote": service_pb.MOVE_KIND_PROMOTE,
    "close": service_pb.MOVE_KIND_CLOSE,
    "stop": service_pb.MOVE_KIND_CLOSE,
}
_PLACES: Mapping[str, str] = {
    "create": "bracket",
    "validate_after": "length",
    "promote": "rung",
    "validation_completed": "length",
}
"""The field that says where a move leads."""


class MoveColumns:
    """An answer under construction."""

    def __init__(self) -> None:
        self.message = service_pb.ListMovesResponse()
        self._trials: dict[str, int] = {}

    def extend(self, entries: Iterable[pb.LoggedEvent]) -> int:
        """Adds entries, in order, until the answer is full.

        Returns:
            Position of the last one that was added; zero for none.
        """
        last = 0
        for entry in entries:
            before = len(self.message.kinds)
            if before and before + len(entry.operations) + 1 > MAX_MOVES:
                break
            last = entry.event.sequence
            self.message.first_sequence = self.message.first_sequence or last
            self.message.times.append(entry.event.time.seconds + entry.event.time.nanos / 1e9)
            self._add(entry.event, _EVENTS)
            for operation in entry.operations:
                self._add(operation, _OPERATIONS)
            self.message.move_counts.append(len(self.message.kinds) - before)
        return last

    def _add(
        self, source: pb.Event | pb.Operation, kinds: Mapping[str, service_pb.MoveKind.ValueType]
    ) -> None:
        name = source.WhichOneof("kind")
        if name is None:
            return
        detail: Any = getattr(source, name)
        trial_key = getattr(detail, "request_id", "")
        if not trial_key:
            return
        message = self.message
        kind = kinds.get(name, service_pb.MOVE_KIND_UNSPECIFIED)
        trial = self._trials.setdefault(trial_key, len(self._trials))
        if trial == len(message.trial_keys):
            message.trial_keys.append(trial_key)
        reason = source.reason
        if isinstance(source, pb.Operation) and reason.HasField("rung") and reason.HasField("threshold"):
            message.threshold_moves.append(len(message.kinds))
            message.threshold_rungs.append(reason.rung)
            message.thresholds.append(reason.threshold)
        message.kinds.append(kind)
        message.trials.append(trial)
        if kind in (service_pb.MOVE_KIND_COMPLETED, service_pb.MOVE_KIND_REPORTED):
            message.metrics.append(detail.metric)
        if name in _PLACES:
            message.places.append(getattr(detail, _PLACES[name]))
