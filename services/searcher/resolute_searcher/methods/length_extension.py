"""Trials that trained to the full length, and train on when a search is given more length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from resolute_searcher.log.operations import Close, MethodOperation, ValidateAfter


class LengthExtension:
    """Remembers who is complete, and who waits to be trained on."""

    def __init__(self) -> None:
        self._complete: dict[str, None] = {}
        self._left: set[str] = set()
        self._waiting: dict[str, None] = {}

    def leave(self, request_id: str) -> None:
        """Notes a trial that left: it does not train on."""
        self._left.add(request_id)

    def retry(self, request_id: str) -> None:
        """Notes that a trial that left is tried again."""
        self._left.discard(request_id)

    def end(self, request_id: str) -> None:
        """Notes a trial that is over."""
        if request_id not in self._left:
            self._complete[request_id] = None

    def extend(self) -> None:
        """Lets everyone wait who is complete."""
        self._waiting.update(self._complete)
        self._complete.clear()

    def next(self, length: int) -> Iterator[MethodOperation]:
        """Yields the work of the next who waits, if anyone does."""
        for request_id in self._waiting:
            yield ValidateAfter(request_id, length)
            yield Close(request_id)
            return

    def dequeue(self, request_id: str) -> bool:
        """Notes that a trial got work; tells whether it waited for it."""
        if request_id not in self._waiting:
            return False
        del self._waiting[request_id]
        return True

    def snapshot(self) -> dict[str, Any]:
        """Gives everything as JSON values."""
        return {
            "complete": list(self._complete),
            "left": sorted(self._left),
            "waiting": list(self._waiting),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces everything by a snapshot's."""
        self._complete = dict.fromkeys(state["complete"])
        self._left = set(state["left"])
        self._waiting = dict.fromkeys(state["waiting"])

    @property
    def waits(self) -> bool:
        """Whether anyone waits to be trained on."""
        return bool(self._waiting)
