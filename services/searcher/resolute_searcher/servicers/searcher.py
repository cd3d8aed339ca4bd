"""All RPCs of the searcher in one place."""

from __future__ import annotations

from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceServicer
from resolute_searcher.servicers.custom_searches import CustomSearchCalls
from resolute_searcher.servicers.importances import ImportanceCalls
from resolute_searcher.servicers.listing import ListingCalls
from resolute_searcher.servicers.moves import MoveCalls
from resolute_searcher.servicers.planning import PlanningCalls
from resolute_searcher.servicers.resume import ResumeCalls
from resolute_searcher.servicers.trials import TrialCalls
from resolute_searcher.servicers.watching import WatchingCalls


class SearcherServicer(
    ResumeCalls,
    WatchingCalls,
    ListingCalls,
    MoveCalls,
    ImportanceCalls,
    TrialCalls,
    CustomSearchCalls,
    PlanningCalls,
    SearcherServiceServicer,
):
    """Answers all calls."""
