"""Wakes whoever follows a search when its log has grown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Watcher:
    """One follower of one search."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Lets the follower look again."""
        self._woken.set()

    async def wait(self, seconds: float) -> bool:
        """Waits to be woken since the last wait.

        Args:
            seconds: How long to wait.

        Returns:
            Whether it was woken; False when the time ran out.
        """
        try:
            await asyncio.wait_for(self._woken.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        self._woken.clear()
        return True


class Watchers:
    """The followers of all searches."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Watcher]] = {}
        self.closed = False

    @contextmanager
    def watch(self, search_id: str) -> Iterator[Watcher]:
        """Follows a search while the block lasts; whoever first looks inside of the block misses nothing."""
        watcher = Watcher()
        self._watchers.setdefault(search_id, set()).add(watcher)
        try:
            yield watcher
        finally:
            self._watchers[search_id].discard(watcher)
            if not self._watchers[search_id]:
                del self._watchers[search_id]

    def notify(self, search_id: str) -> None:
        """Wakes the followers of a search."""
        for watcher in self._watchers.get(search_id, ()):
            watcher.wake()

    def close(self) -> None:
        """Wakes everyone for the last time: followers find `closed` and leave."""
        self.closed = True
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.wake()
