"""Wakes whoever follows a search when its log has grown, and hands over the new actions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from resolute.api.searcher.v1 import search_pb2 as pb

_MAX_PENDING = 10_000


class Watcher:
    """One follower of one search."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._pending: list[pb.Action] = []
        self._complete = True

    def wake(self, actions: Sequence[pb.Action] | None) -> None:
        """Lets the follower look again.

        Args:
            actions: All that came, in order; None when the log must be read to know.
        """
        if actions is None or len(self._pending) + len(actions) > _MAX_PENDING:
            self._pending.clear()
            self._complete = False
        elif self._complete:
            self._pending += actions
        self._woken.set()

    def take(self, after: int) -> list[pb.Action] | None:
        """Takes the actions beyond a position that were handed over, in order.

        Returns:
            The actions; None when some may be missing, and only the log has them all.
        """
        pending = [action for action in self._pending if action.sequence > after]
        complete = self._complete and (not pending or pending[0].sequence == after + 1)
        self._pending = []
        self._complete = True
        return pending if complete else None

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

    def watched(self) -> list[str]:
        """The searches that have followers."""
        return list(self._watchers)

    def notify(self, search_id: str, actions: Sequence[pb.Action] | None = None) -> None:
        """Wakes the followers of a search.

        Args:
            search_id: The search.
            actions: All that came since they were last woken, in order; None when the log must be read to
                know.
        """
        for watcher in self._watchers.get(search_id, ()):
            watcher.wake(actions)

    def close(self) -> None:
        """Wakes everyone for the last time: followers find `closed` and leave."""
        self.closed = True
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.wake(())
