"""Log entries in brief: columns with the effect of each entry on a trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.storage.searcher.v1 import log_pb2 as pb

MAX_MOVES = 50_000
"""Most moves of one answer that has several entries: with the keys of as many trials they are 3 MB."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """The move for a kind of event or operation."""

    move: int = service_pb.MOVE_KIND_UNSPECIFIED
    place: str = ""
    """The field that says where it leads; empty for none."""
    has_metric: bool = False


_EVENTS: Mapping[str, _Kind] = {
    "trial_created": _Kind(),
    "trial_closed": _Kind(),
    "sealed": _Kind(),
    "validation_completed": _Kind(service_pb.MOVE_KIND_COMPLETED, "length", has_metric=True),
    "validation_reported": _Kind(service_pb.MOVE_KIND_REPORTED, has_metric=True),
    "trial_exited": _Kind(service_pb.MOVE_KIND_EXITED),
    "retried": _Kind(service_pb.MOVE_KIND_RETRIED),
}
_OPERATIONS: Mapping[str, _Kind] = {
    "create": _Kind(service_pb.MOVE_KIND_CREATE, "bracket"),
    "validate_after": _Kind(service_pb.MOVE_KIND_TRAIN, "length"),
    "promote": _Kind(service_pb.MOVE_KIND_PROMOTE, "rung"),
    "close": _Kind(service_pb.MOVE_KIND_CLOSE),
    "stop": _Kind(service_pb.MOVE_KIND_CLOSE),
}


class MoveColumns:
    """A response under construction. Its columns are lists until they are complete, because logs are long."""

    def __init__(self) -> None:
        self._places_of_keys: dict[str, int] = {}
        self._times: list[float] = []
        self._counts: list[int] = []
        self._kinds: list[int] = []
        self._trials: list[int] = []
        self._metrics: list[float] = []
        self._places: list[float] = []
        self._limits: list[tuple[int, int, float]] = []
        self._first = 0
        self.last = 0
        """Position of the last entry that was added; zero for none."""

    def extend(self, entries: Iterable[pb.LoggedEvent]) -> None:
        """Adds entries, in order, until the response is full."""
        for entry in entries:
            event, operations = entry.event, entry.operations
            before = len(self._kinds)
            if before and before + len(operations) + 1 > MAX_MOVES:
                break
            self.last = event.sequence
            self._first = self._first or self.last
            self._times.append(event.time.seconds + event.time.nanos / 1e9)
            self._add(event, _EVENTS)
            for operation in operations:
                if self._add(operation, _OPERATIONS):
                    self._add_limit(operation.reason)
            self._counts.append(len(self._kinds) - before)

    def message(self) -> service_pb.ListMovesResponse:
        """The response with the moves that were added so far."""
        return service_pb.ListMovesResponse(
            first_sequence=self._first,
            times=self._times,
            move_counts=self._counts,
            trial_keys=self._places_of_keys,
            kinds=self._kinds,  # type: ignore[arg-type] # numbers of the enumeration
            trials=self._trials,
            metrics=self._metrics,
            places=self._places,
            threshold_moves=[move for move, _, _ in self._limits],
            threshold_rungs=[rung for _, rung, _ in self._limits],
            thresholds=[threshold for _, _, threshold in self._limits],
        )

    def _add(self, source: pb.Event | pb.Operation, kinds: Mapping[str, _Kind]) -> bool:
        """Adds a move, unless an event or operation concerns no trial; returns whether it did."""
        name = source.WhichOneof("kind") or ""
        kind = kinds.get(name)
        if kind is None:
            return False
        detail: Any = getattr(source, name)
        self._kinds.append(kind.move)
        known = self._places_of_keys
        self._trials.append(known.setdefault(detail.request_id, len(known)))
        if kind.has_metric:
            self._metrics.append(detail.metric)
        if kind.place:
            self._places.append(getattr(detail, kind.place))
        return True

    def _add_limit(self, reason: pb.Reason) -> None:
        """Adds the metric with which the last added decision compared."""
        if reason.HasField("threshold") and reason.HasField("rung"):
            self._limits.append((len(self._kinds) - 1, reason.rung, reason.threshold))
