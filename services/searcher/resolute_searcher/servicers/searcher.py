"""Combines all RPCs of the searcher."""

from __future__ import annotations

from resolute.api.searcher.v1 import searcher_service_pb2
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceServicer
from resolute.contracts.clock import Clock
from resolute_searcher.runtime.live_searches import LiveSearches
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Topic
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_searcher.servicers.custom_searches import CustomSearchCalls
from resolute_searcher.servicers.descriptions import Descriptions
from resolute_searcher.servicers.importances import ImportanceCalls
from resolute_searcher.servicers.listing import ListingCalls
from resolute_searcher.servicers.planning import PlanningCalls
from resolute_searcher.servicers.resume import ResumeCalls
from resolute_searcher.servicers.searches import SearchCalls
from resolute_searcher.servicers.trials import TrialCalls
from resolute_searcher.servicers.watching import WatchingCalls
from resolute_serving.notifier import Notifier
from resolute_serving.server.handlers import combine_handlers
from resolute_serving.workers.pool import WorkerPool

SERVICE = searcher_service_pb2.DESCRIPTOR.services_by_name["SearcherService"]


def searcher_servicer(
    *,
    storage: Storage,
    searches: LiveSearches,
    trial_index: TrialIndex,
    notifier: Notifier[Topic],
    clock: Clock,
    planning_pool: WorkerPool,
    importance_pool: WorkerPool,
) -> SearcherServiceServicer:
    """Creates the servicer from the classes that handle the RPCs.

    Args:
        storage: Where the logs are.
        searches: The searches in memory.
        trial_index: Knows the searches of trials.
        notifier: Wakes anyone who follows.
        clock: Measures heartbeats.
        planning_pool: Calculates answers that take long.
        importance_pool: Estimates importances of hyperparameters, in one process.
    """
    descriptions = Descriptions(storage=storage, searches=searches)
    servicer: SearcherServiceServicer = combine_handlers(
        SearcherServiceServicer,
        SearchCalls(
            storage=storage, searches=searches, descriptions=descriptions, notifier=notifier, clock=clock
        ),
        WatchingCalls(storage=storage, descriptions=descriptions, notifier=notifier, clock=clock),
        ResumeCalls(storage=storage, searches=searches, trial_index=trial_index, descriptions=descriptions),
        TrialCalls(storage=storage, searches=searches, trial_index=trial_index, notifier=notifier),
        CustomSearchCalls(storage=storage, searches=searches, notifier=notifier),
        ListingCalls(storage=storage),
        PlanningCalls(storage=storage, planning_pool=planning_pool),
        ImportanceCalls(storage, importance_pool),
    )
    return servicer
