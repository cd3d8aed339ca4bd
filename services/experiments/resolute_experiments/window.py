"""Counts events of the last minute, by key."""

from __future__ import annotations

from collections import OrderedDict, deque

from resolute.contracts.clock import Clock

_SECONDS = 60.0
_REMEMBERED = 20_000
"""Keys that are remembered: more than one process serves within a minute."""


class Window:
    """Limits the number of events within a minute, for each key.

    Args:
        clock: Tells the time.
        most: Largest number of events.
    """

    def __init__(self, clock: Clock, *, most: int) -> None:
        self._clock = clock
        self._most = most
        self._moments: OrderedDict[str, deque[float]] = OrderedDict()

    def full(self, key: str) -> bool:
        """Whether no more may happen now."""
        moments = self._moments.get(key, deque())
        since = self._clock.monotonic() - _SECONDS
        while moments and moments[0] <= since:
            moments.popleft()
        return len(moments) >= self._most

    def add(self, key: str) -> float:
        """Counts one, and returns its moment."""
        moment = self._clock.monotonic()
        self._moments.setdefault(key, deque()).append(moment)
        self._moments.move_to_end(key)
        while len(self._moments) > _REMEMBERED:
            self._moments.popitem(last=False)
        return moment

    def remove(self, key: str, moment: float) -> None:
        """Forgets one that was counted."""
        moments = self._moments.get(key)
        if moments and moment in moments:
            moments.remove(moment)
