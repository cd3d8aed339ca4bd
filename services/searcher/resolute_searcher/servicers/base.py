"""What the handlers of all calls stand on."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.contracts.clock import Clock
from resolute_searcher.runtime.importances import Importances
from resolute_searcher.runtime.live_searches import LiveSearches
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Topic
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_serving.notifier import Notifier
from resolute_serving.workers.pool import WorkerPool


@dataclass(frozen=True, kw_only=True)
class BaseCalls:
    """The base of the handlers.

    Attributes:
        storage: Where the logs are.
        searches: The searches in memory.
        trial_index: Know the searches of trials.
        notifier: Wakes anyone who follows.
        clock: Measures heartbeats.
        planning_pool: Calculates answers that take long.
        importances: Estimates importances of hyperparameters.
    """

    storage: Storage
    searches: LiveSearches
    trial_index: TrialIndex
    notifier: Notifier[Topic]
    clock: Clock
    planning_pool: WorkerPool
    importances: Importances
