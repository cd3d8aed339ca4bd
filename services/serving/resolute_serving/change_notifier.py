"""Tells followers in this process that a trial has something new. A hint: they look now and then anyway."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakValueDictionary


@dataclass(frozen=True, kw_only=True)
class PollIntervals:
    """How often a follower does something while nothing happens, in seconds."""

    recheck: float = 1.0
    """It looks for what another replica took."""
    heartbeat: float = 15.0
    """It shows that the stream lives."""

    @classmethod
    def on(cls, database_url: str) -> PollIntervals:
        """What suits a database: an SQLite file has no other replica, so looking again is only for safety."""
        return cls(recheck=10.0) if database_url.startswith("sqlite") else cls()


class ChangeNotifier:
    """Events by trial, shared by its followers and gone with the last of them. For one event loop."""

    def __init__(self) -> None:
        self._events: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()

    def next_for(self, trial_id: str) -> asyncio.Event:
        """The event of the next news of a trial. Take it before looking, so that no news is missed."""
        event = self._events.get(trial_id)
        if event is None:
            event = self._events[trial_id] = asyncio.Event()
        return event

    def notify(self, trial_id: str) -> None:
        """Wakes the followers of a trial."""
        event = self._events.pop(trial_id, None)
        if event is not None:
            event.set()

    async def wait(self, news: asyncio.Event, seconds: float) -> None:
        """Waits for news, and no longer than some seconds."""
        try:
            await asyncio.wait_for(news.wait(), seconds)
        except asyncio.TimeoutError:
            return

    def notify_all(self) -> None:
        """Wakes every follower."""
        for trial_id in list(self._events):
            self.notify(trial_id)
