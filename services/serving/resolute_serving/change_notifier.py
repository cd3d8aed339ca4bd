"""Tells followers in this process which trials have changed. A hint: they also look without it at times."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PollIntervals:
    """How often a follower does something while nothing happens, in seconds."""

    recheck: float = 1.0
    """It looks for what another replica stored."""
    heartbeat: float = 15.0
    """It shows that the stream lives."""

    @classmethod
    def on(cls, database_url: str) -> PollIntervals:
        """The intervals for a database: an SQLite file has no other replica, so rechecks are for safety."""
        return cls(recheck=10.0) if database_url.startswith("sqlite") else cls()

    def recheck_of(self, count: int) -> float:
        """Seconds between two looks of a follower at ``count`` objects: many are looked at less often."""
        return self.recheck * max(1.0, count / 50)


class Subscription:
    """Collects which trials have changed since it was last asked."""

    def __init__(self) -> None:
        self._changed: set[str] = set()
        self._event = asyncio.Event()

    def add(self, trial_id: str) -> None:
        """Notes a change."""
        self._changed.add(trial_id)
        self._event.set()

    async def wait(self, seconds: float) -> frozenset[str]:
        """Waits for a change, and no longer than some seconds; returns the trials that have changed."""
        if not self._event.is_set():
            try:
                await asyncio.wait_for(self._event.wait(), seconds)
            except asyncio.TimeoutError:
                return frozenset()
        self._event.clear()
        changed = frozenset(self._changed)
        self._changed.clear()
        return changed


class ChangeNotifier:
    """Who wants to know of changes of which trials. For one event loop."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, set[Subscription]] = {}

    @contextmanager
    def subscribe(self, trial_ids: Iterable[str]) -> Iterator[Subscription]:
        """Subscribes to changes of trials. Subscribe before looking, so that no change is missed."""
        wanted = set(trial_ids)
        subscription = Subscription()
        for trial_id in wanted:
            self._subscriptions.setdefault(trial_id, set()).add(subscription)
        try:
            yield subscription
        finally:
            for trial_id in wanted:
                self._subscriptions[trial_id].discard(subscription)
                if not self._subscriptions[trial_id]:
                    del self._subscriptions[trial_id]

    def notify(self, trial_id: str) -> None:
        """Wakes the followers of a trial."""
        for subscription in self._subscriptions.get(trial_id, ()):
            subscription.add(trial_id)

    def notify_all(self) -> None:
        """Wakes every follower."""
        for trial_id in self._subscriptions:
            self.notify(trial_id)
