"""One rung of successive halving: metrics of the trials that reached it, with its best share kept apart."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class RungEntry(NamedTuple):
    """A trial on a rung; entries compare by place, the smaller the better.

    Attributes:
        metric: Its metric, smaller being better.
        order: Decides among equal metrics; unique on its rung.
        request_id: The trial.
    """

    metric: float
    order: int
    request_id: str


class Rung:
    """The trials on a rung, in order of their metrics.

    The best ``floor(n / divisor)`` of n entries, but at least `at_least`, are its *top*. The top is a heap
    with its worst entry at the root, the rest one with its best at the root, so that a report costs O(log n),
    however many trials came before it.

    Args:
        divisor: One over the share that is the top; above 1.
        at_least: Smallest size of the top of a rung that is not empty.
        newest_first: Whether a later entry stands before an earlier one with the same metric.
    """

    def __init__(self, divisor: float, *, at_least: int = 0, newest_first: bool = False) -> None:
        self._divisor = divisor
        self._at_least = at_least
        self._step = -1 if newest_first else 1
        self._arrivals = 0
        self._places: dict[str, tuple[float, int]] = {}
        self._top: list[RungEntry] = []  # metric and order negated: heapq keeps the smallest at the root
        self._rest: list[RungEntry] = []

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._places

    def __iter__(self) -> Iterator[RungEntry]:
        """Yields the entries, best first. It sorts: for closing a rung and for people, not for each event."""
        return iter(sorted([*map(_negated, self._top), *self._rest]))

    def insert(self, request_id: str, metric: float) -> None:
        """Adds a trial with its metric, smaller being better."""
        self._arrivals += 1
        entry = RungEntry(metric, self._step * self._arrivals, request_id)
        self._places[request_id] = (entry.metric, entry.order)
        if self._top and entry < _negated(self._top[0]):
            heapq.heappush(self._top, _negated(entry))
        else:
            heapq.heappush(self._rest, entry)
        self._balance()

    def remove(self, request_id: str) -> None:
        """Forgets a trial as if it had never been here; O(n), for the rare trial that was refused."""
        if self._places.pop(request_id, None) is None:
            return
        self._top = [entry for entry in self._top if entry.request_id != request_id]
        self._rest = [entry for entry in self._rest if entry.request_id != request_id]
        heapq.heapify(self._top)
        heapq.heapify(self._rest)
        self._balance()

    def require(self, at_least: int) -> None:
        """Sets the smallest size of the top of a rung that is not empty."""
        self._at_least = at_least
        self._balance()

    def best(self) -> list[RungEntry]:
        """Gives the top, best first."""
        return sorted(map(_negated, self._top))

    def in_top(self, request_id: str) -> bool:
        """Tells whether a trial is among the best."""
        if not self._top:
            return False
        last = _negated(self._top[0])
        return self._places[request_id] <= (last.metric, last.order)

    def last_of_top(self) -> str | None:
        """Gives the worst trial of the top; None when the top is empty."""
        return self._top[0].request_id if self._top else None

    def top_grew(self) -> bool:
        """Tells whether the newest entry made the top larger than it was."""
        return self._top_size(len(self._places)) != self._top_size(len(self._places) - 1)

    def snapshot(self) -> dict[str, Any]:
        """Gives the entries, best first, as JSON values, and how many of them are the top."""
        entries = [[entry.request_id, entry.metric, entry.order] for entry in self]
        return {"arrivals": self._arrivals, "top": len(self._top), "entries": entries}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces the entries by a snapshot's."""
        self._arrivals = state["arrivals"]
        self._top = []
        # A sorted list is a heap.
        self._rest = [RungEntry(metric, order, trial) for trial, metric, order in state["entries"]]
        self._places = {entry.request_id: (entry.metric, entry.order) for entry in self._rest}
        self._balance()

    def _top_size(self, entries: int) -> int:
        return max(int(entries / self._divisor), min(self._at_least, entries))

    def _balance(self) -> None:
        size = self._top_size(len(self._places))
        while len(self._top) > size:
            heapq.heappush(self._rest, _negated(heapq.heappop(self._top)))
        while len(self._top) < size:
            heapq.heappush(self._top, _negated(heapq.heappop(self._rest)))


def _negated(entry: RungEntry) -> RungEntry:
    return RungEntry(-entry.metric, -entry.order, entry.request_id)
