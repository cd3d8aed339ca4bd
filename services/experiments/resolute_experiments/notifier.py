"""Wakes anyone who waits for a change. A hint only: waiters look at the database, now and then unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

SCHEDULER_WAKEUP = "schedule"
"""Key of the scheduler: slots were freed or asked for."""
SIGNAL_CHANGES = "signals"
"""Key of anyone who watches signals."""


class Notifier:
    """Lets tasks wait until something about a key changes. For one event loop."""

    def __init__(self) -> None:
        self._waiters: dict[Hashable, set[asyncio.Event]] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the service is stopping, so that waiters should end."""
        return self._closed

    def notify(self, *keys: Hashable) -> None:
        """Wakes everyone who waits for one of the keys."""
        for key in keys:
            for waiter in self._waiters.get(key, ()):
                waiter.set()

    def close(self) -> None:
        """Wakes everyone for good."""
        self._closed = True
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.set()

    def subscribe(self, *keys: Hashable) -> Subscription:
        """Begins to listen, so that no change between looking and waiting is missed."""
        return Subscription(self, keys)

    def _add(self, key: Hashable, waiter: asyncio.Event) -> None:
        self._waiters.setdefault(key, set()).add(waiter)

    def _remove(self, key: Hashable, waiter: asyncio.Event) -> None:
        waiters = self._waiters.get(key, set())
        waiters.discard(waiter)
        if not waiters:
            self._waiters.pop(key, None)


class Subscription:
    """Listens to some keys while it is entered."""

    def __init__(self, notifier: Notifier, keys: tuple[Hashable, ...]) -> None:
        self._notifier = notifier
        self._keys = keys
        self._event = asyncio.Event()

    def __enter__(self) -> Subscription:  # noqa: PYI034 - Self needs Python 3.11
        for key in self._keys:
            self._notifier._add(key, self._event)  # noqa: SLF001 - two halves of one thing
        return self

    def __exit__(self, *_: object) -> None:
        for key in self._keys:
            self._notifier._remove(key, self._event)  # noqa: SLF001 - two halves of one thing

    async def wait(self, timeout: float) -> bool:
        """Waits for a change since the last wait, for at most ``timeout`` seconds.

        Returns:
            Whether there was one.
        """
        if self._notifier.closed:
            return True
        try:
            await asyncio.wait_for(self._event.wait(), timeout)
        except asyncio.TimeoutError:
            return False
        self._event.clear()
        return True
