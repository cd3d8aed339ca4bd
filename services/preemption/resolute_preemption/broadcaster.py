"""The last signal of every allocation, and everyone who waits for the next.

Level-triggered: a watcher gets what stands now if it is newer than what it has seen. States that came and
went between two looks are not sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass

from resolute.api.preemption.v1.signal_pb2 import Signal


@dataclass(frozen=True)
class Subscription:
    """One allocation that a watcher follows."""

    key: str
    """Tells the watcher's subscriptions apart."""
    allocation_id: str
    """The allocation."""
    after_revision: int
    """Revision that the watcher has seen; zero for none."""


@dataclass(frozen=True)
class SignalChange:
    """A signal that a watcher has not seen."""

    key: str
    """Key of the subscription."""
    signal: Signal
    """The signal."""


class SignalBroadcaster:
    """Holds signals in memory. Everything happens in one event loop.

    Args:
        heartbeat: Seconds after which a watcher without news hears that its watch lives.
    """

    def __init__(self, *, heartbeat: float) -> None:
        self._heartbeat = heartbeat
        self._signals: dict[str, Signal] = {}
        self._waiting: dict[str, set[asyncio.Future[bool]]] = {}
        self._watchers = 0
        self._closed = False

    @property
    def watchers(self) -> int:
        """How many wait at this moment."""
        return self._watchers

    def update(self, signals: Iterable[Signal]) -> None:
        """Takes signals that changed; one that is older than the one known is left out."""
        for signal in signals:
            known = self._signals.get(signal.allocation_id)
            if known is None or known.revision < signal.revision:
                self._put(signal)

    def replace(self, signals: Iterable[Signal]) -> None:
        """Takes the signals of all allocations there are, and forgets the others.

        Anyone who watches a forgotten allocation continues to wait: it may come back.
        """
        known, self._signals = self._signals, {}
        for signal in signals:
            if known.get(signal.allocation_id) == signal:
                self._signals[signal.allocation_id] = signal
            else:
                self._put(signal)

    async def watch(self, subscriptions: Sequence[Subscription]) -> AsyncGenerator[SignalChange | None, None]:
        """Returns the signals of some allocations that the watcher has not seen, then each newer one.

        Ends when the broadcaster is closed. An allocation that is not known is waited for.

        Yields:
            The change; None at the start if there is none to send, and whenever nothing came for a while.
        """
        seen = {each.key: each.after_revision for each in subscriptions}
        allocations = {each.allocation_id for each in subscriptions}
        quiet = True
        while not self._closed:
            for each in subscriptions:
                signal = self._signals.get(each.allocation_id)
                if signal is not None and signal.revision > seen[each.key]:
                    seen[each.key], quiet = signal.revision, False
                    yield SignalChange(each.key, signal)
            if quiet:
                yield None
            if not self._closed and not self._has_news(subscriptions, seen):
                quiet = not await self._wait(allocations)

    def close(self) -> None:
        """Ends every watch."""
        self._closed = True
        for allocation_id in list(self._waiting):
            self._wake(allocation_id)

    def _has_news(self, subscriptions: Sequence[Subscription], seen: dict[str, int]) -> bool:
        signals = ((each.key, self._signals.get(each.allocation_id)) for each in subscriptions)
        return any(signal is not None and signal.revision > seen[key] for key, signal in signals)

    def _put(self, signal: Signal) -> None:
        self._signals[signal.allocation_id] = signal
        self._wake(signal.allocation_id)

    def _wake(self, allocation_id: str) -> None:
        for waiter in self._waiting.get(allocation_id, ()):
            _resolve(waiter, news=True)

    async def _wait(self, allocations: set[str]) -> bool:
        """Waits for a change, and says whether there was one before the time for a heartbeat came."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        for allocation_id in allocations:
            self._waiting.setdefault(allocation_id, set()).add(waiter)
        self._watchers += 1
        timer = loop.call_later(self._heartbeat, _resolve, waiter, False)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._watchers -= 1
            for allocation_id in allocations:
                waiting = self._waiting[allocation_id]
                waiting.discard(waiter)
                if not waiting:
                    del self._waiting[allocation_id]


def _resolve(waiter: asyncio.Future[bool], news: bool) -> None:
    if not waiter.done():
        waiter.set_result(news)
