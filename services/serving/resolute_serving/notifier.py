"""Wakes the tasks that wait for a change in this process.

A notification is a hint: a waiting task reads the stored state. It also polls at intervals, because other
replicas change the state without a notification.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


LOOKS_AT_ONCE = 16
"""Of people's streams that one change wakes: thousands may watch one object, and other calls come between."""


class Subscription(Generic[K]):
    """Collects the topics that have changed since the last call, each once, for one waiting task.

    Args:
        closed: Whether the notifier is closed, so that it never waits.
    """

    def __init__(self, *, closed: bool = False) -> None:
        self._changed: set[K] = set()
        self._closed = closed
        self._waiter: asyncio.Future[None] | None = None

    @property
    def waiting(self) -> bool:
        """Whether its task waits at this moment."""
        return self._waiter is not None

    def add(self, topic: K) -> None:
        """Notes a change."""
        self._changed.add(topic)
        self._wake()

    def close(self) -> None:
        """Ends the present wait, and every later one at once."""
        self._closed = True
        self._wake()

    async def wait(self, seconds: float) -> frozenset[K]:
        """Waits for a change since the last wait.

        Args:
            seconds: The longest time to wait; infinity is allowed.

        Returns:
            The topics that have changed; none when the time ran out or the notifier is closed.
        """
        if not self._changed and not self._closed:
            # Unlike ``wait_for`` this needs no task, and swallows no cancellation.
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        changed, self._changed = frozenset(self._changed), set()
        return changed

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Notifier(Generic[K]):
    """The subscriptions to topics, for one event loop."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription[K]] = set()
        self._by_topic: dict[K, set[Subscription[K]]] = {}
        self._closed = False
        self.turns = asyncio.Semaphore(LOOKS_AT_ONCE)
        """Streams of people hold one of these while they look at what is stored."""

    @property
    def closed(self) -> bool:
        """Whether the service is stopping, so that waiting tasks should end."""
        return self._closed

    @property
    def topics(self) -> frozenset[K]:
        """The topics that someone subscribes to."""
        return frozenset(self._by_topic)

    @property
    def waiting(self) -> int:
        """How many wait at this moment."""
        return sum(subscription.waiting for subscription in self._subscriptions)

    @contextmanager
    def subscribe(self, *topics: K) -> Iterator[Subscription[K]]:
        """Subscribes while the block lasts. Subscribe before looking, so that no change is missed.

        Args:
            topics: What to subscribe to; without any, the subscription only ends when the notifier closes.
        """
        subscription = Subscription[K](closed=self._closed)
        self._subscriptions.add(subscription)
        for topic in topics:
            self._by_topic.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            for topic in set(topics):
                self._by_topic[topic].discard(subscription)
                if not self._by_topic[topic]:
                    del self._by_topic[topic]

    def notify(self, *topics: K) -> None:
        """Wakes everyone who subscribes to one of the topics."""
        for topic in topics:
            for subscription in self._by_topic.get(topic, ()):
                subscription.add(topic)

    def close(self) -> None:
        """Wakes everyone for good."""
        self._closed = True
        for subscription in self._subscriptions:
            subscription.close()
