"""The last signal of every allocation, and everyone who waits for the next.

Level-triggered: a watcher gets what stands now if it is newer than what it has seen. States that came and
went between two looks are not sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

from resolute.api.preemption.v1.preemption_service_pb2 import Signal


class SignalBroadcaster:
    """Holds signals in memory. Everything happens in one event loop.

    Args:
        heartbeat: Seconds after which a watcher without news hears that its watch lives.
    """

    def __init__(self, *, heartbeat: float) -> None:
        self._heartbeat = heartbeat
        self._signals: dict[str, Signal] = {}
        self._waiting: dict[str, set[asyncio.Future[bool]]] = {}
        self._closed = False

    @property
    def watchers(self) -> int:
        """How many wait at this moment."""
        return sum(len(waiting) for waiting in self._waiting.values())

    def update(self, signals: Iterable[Signal]) -> None:
        """Takes signals that changed; one that is older than the one known is left out."""
        for signal in signals:
            known = self._signals.get(signal.allocation_id)
            if known is None or known.revision < signal.revision:
                self._put(signal)

    def replace(self, signals: Iterable[Signal]) -> None:
        """Takes the signals of all allocations there are, and forgets the others.

        Whoever watches a forgotten allocation goes on to wait: it may come back.
        """
        known, self._signals = self._signals, {}
        for signal in signals:
            if known.get(signal.allocation_id) == signal:
                self._signals[signal.allocation_id] = signal
            else:
                self._put(signal)

    async def watch(self, allocation_id: str, *, after_revision: int) -> AsyncGenerator[Signal | None, None]:
        """Gives an allocation's signal when it is newer than ``after_revision``, then each newer one.

        Ends when the broadcaster is closed. An allocation that is not known is waited for.

        Yields:
            The signal; None at the start if there is none to send, and whenever nothing came for a while.
        """
        seen = after_revision
        news = False
        while not self._closed:
            signal = self._signals.get(allocation_id)
            if signal is not None and signal.revision > seen:
                seen = signal.revision
                yield signal
            elif not news:
                yield None
            if not self._closed and not self._has_news(allocation_id, seen):
                news = await self._wait(allocation_id)

    def close(self) -> None:
        """Ends every watch."""
        self._closed = True
        for allocation_id in list(self._waiting):
            self._wake(allocation_id)

    def _has_news(self, allocation_id: str, seen: int) -> bool:
        signal = self._signals.get(allocation_id)
        return signal is not None and signal.revision > seen

    def _put(self, signal: Signal) -> None:
        self._signals[signal.allocation_id] = signal
        self._wake(signal.allocation_id)

    def _wake(self, allocation_id: str) -> None:
        for waiter in self._waiting.get(allocation_id, ()):
            _resolve(waiter, news=True)

    async def _wait(self, allocation_id: str) -> bool:
        """Waits for a change, and says whether there was one before the time for a heartbeat came."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        waiting = self._waiting.setdefault(allocation_id, set())
        waiting.add(waiter)
        timer = loop.call_later(self._heartbeat, _resolve, waiter, False)
        try:
            return await waiter
        finally:
            timer.cancel()
            waiting.discard(waiter)
            if not waiting and self._waiting.get(allocation_id) is waiting:
                del self._waiting[allocation_id]


def _resolve(waiter: asyncio.Future[bool], news: bool) -> None:
    if not waiter.done():
        waiter.set_result(news)
