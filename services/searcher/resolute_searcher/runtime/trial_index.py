"""A cache of each trial's search, which every call about a trial needs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from resolute_searcher.identifiers import canonical_uuid, trial_id
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.store import trials


class TrialIndex:
    """Looks up the search of a trial. Its entries never change, because trials do not move.

    Args:
        storage: The service's database.
        capacity: Number of trials in the cache.
    """

    def __init__(self, storage: Storage, *, capacity: int = 100_000) -> None:
        self._storage = storage
        self._capacity = capacity
        self._known: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def add(self, search_id: str, trial_keys: Iterable[str]) -> None:
        """Adds the trials that a search has just requested."""
        for trial_key in trial_keys:
            self._remember(trial_id(search_id, trial_key), (search_id, trial_key))

    async def find(self, trial: str) -> tuple[str, str]:
        """Returns the search of a trial, and the trial's identifier within it.

        Args:
            trial: UUID of the trial as sent.

        Raises:
            NotFoundError: No search asked for it.
            InvalidArgumentError: It is no UUID.
        """
        owner = self._known.get(trial)
        if owner is None:
            canonical = canonical_uuid(trial, field="trial_id")
            owner = await self._storage.read(lambda c: trials.find_trial(c, canonical))
            self._remember(trial, owner)
        return owner

    def _remember(self, trial: str, owner: tuple[str, str]) -> None:
        self._known[trial] = owner
        if len(self._known) > self._capacity:
            self._known.popitem(last=False)
