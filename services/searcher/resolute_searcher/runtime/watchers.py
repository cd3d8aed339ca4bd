"""Wakes anyone who follows or watches searches that changed, and hands new actions to followers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from resolute.storage.searcher.v1 import log_pb2 as pb

W = TypeVar("W")
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


class StatusWatcher:
    """One watcher of the statuses of some searches.

    Args:
        search_ids: The searches; all of them count as changed at first.
    """

    def __init__(self, search_ids: Iterable[str]) -> None:
        self._changed = set(search_ids)
        self._woken = asyncio.Event()

    def wake(self, search_id: str | None) -> None:
        """Notes that a search may have changed; with None, just wakes."""
        if search_id is not None:
            self._changed.add(search_id)
        self._woken.set()

    def take(self) -> set[str]:
        """Takes the searches that may have changed since the last call."""
        changed, self._changed = self._changed, set()
        self._woken.clear()
        return changed

    async def wait(self) -> None:
        """Waits for a change since the last `take`."""
        await self._woken.wait()


class Watchers:
    """The followers and watchers of all searches."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Watcher]] = {}
        self._status_watchers: dict[str, set[StatusWatcher]] = {}
        self.closed = False

    @contextmanager
    def watch(self, search_id: str) -> Iterator[Watcher]:
        """Follows a search while the block lasts; whoever first looks inside of the block misses nothing."""
        watcher = Watcher()
        with _entered(self._watchers, [search_id], watcher):
            yield watcher

    @contextmanager
    def watch_statuses(self, search_ids: Collection[str]) -> Iterator[StatusWatcher]:
        """Watches the statuses of searches while the block lasts."""
        watcher = StatusWatcher(search_ids)
        with _entered(self._status_watchers, search_ids, watcher):
            yield watcher

    def watched(self) -> list[str]:
        """The searches that have followers or watchers."""
        return list(self._watchers.keys() | self._status_watchers.keys())

    def notify(self, search_id: str, actions: Sequence[pb.Action] | None = None) -> None:
        """Wakes the followers and watchers of a search.

        Args:
            search_id: The search.
            actions: All that came since they were last woken, in order; None when the log must be read to
                know.
        """
        for watcher in self._watchers.get(search_id, ()):
            watcher.wake(actions)
        self.notify_progress(search_id)

    def notify_progress(self, search_id: str) -> None:
        """Wakes the watchers of a search whose log is as it was."""
        for watcher in self._status_watchers.get(search_id, ()):
            watcher.wake(search_id)

    def close(self) -> None:
        """Wakes everyone for the last time: they find `closed` and leave."""
        self.closed = True
        for followers in self._watchers.values():
            for follower in followers:
                follower.wake(())
        for watchers in self._status_watchers.values():
            for watcher in watchers:
                watcher.wake(None)


@contextmanager
def _entered(table: dict[str, set[W]], search_ids: Collection[str], watcher: W) -> Iterator[None]:
    """Keeps a watcher in a table while the block lasts."""
    for search_id in search_ids:
        table.setdefault(search_id, set()).add(watcher)
    try:
        yield
    finally:
        for search_id in search_ids:
            table[search_id].discard(watcher)
            if not table[search_id]:
                del table[search_id]
