"""Polls for changes by other replicas, for all followers of this one."""

from __future__ import annotations

from functools import partial

import structlog

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Topic, everything
from resolute_searcher.store.search_rows import read_tips
from resolute_serving.notifier import Notifier
from resolute_serving.repetition import PeriodicTask

_PAUSE_SECONDS = 1.0
_BATCH = 1000
_log = structlog.get_logger("searcher")


class ChangePoller:
    """Wakes the followers of each search whose log was created, has grown or was deleted, by any replica.

    One query a second for the tips of all watched searches costs the same for a thousand idle searches as for
    a few. A query by each follower would not.

    Args:
        storage: The service's database.
        notifier: The subscriptions to searches.
        pause: Seconds between two queries.
    """

    def __init__(self, storage: Storage, notifier: Notifier[Topic], *, pause: float = _PAUSE_SECONDS) -> None:
        self._storage = storage
        self._notifier = notifier
        self._seen: dict[str, str] = {}
        self.polls = PeriodicTask(
            self.poll,
            name="searcher-change-poller",
            seconds=pause,
            failures=LoggedBackoff(_log, "followers may receive changes by other replicas late"),
        )
        """Calls ``poll`` from its start to its stop."""

    async def poll(self) -> None:
        """Wakes the followers of searches that changed since the last poll, and new followers."""
        watched = list({search_id for search_id, _ in self._notifier.topics})
        seen: dict[str, str] = {}
        for start in range(0, len(watched), _BATCH):
            some = watched[start : start + _BATCH]
            seen |= await self._storage.read(partial(read_tips, search_ids=some))
        for search_id in watched:
            if self._seen.get(search_id) != seen.get(search_id):
                self._notifier.notify(*everything(search_id))
        self._seen = seen
