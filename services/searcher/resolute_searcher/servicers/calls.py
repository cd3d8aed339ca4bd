"""What the handlers of all calls stand on."""

from __future__ import annotations

from dataclasses import dataclass

from resolute_searcher.live import LiveSearches
from resolute_searcher.owners import Owners
from resolute_searcher.storage import Storage
from resolute_searcher.watching import Watchers
from resolute_searcher.workers import Workers


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The base of the handlers.

    Attributes:
        storage: Where the logs are.
        searches: The searches in memory.
        owners: Know the searches of trials.
        watchers: Wake whoever follows.
        workers: Do what takes long.
    """

    storage: Storage
    searches: LiveSearches
    owners: Owners
    watchers: Watchers
    workers: Workers
