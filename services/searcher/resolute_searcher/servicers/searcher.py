"""All RPCs of the searcher in one place."""

from __future__ import annotations

from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceServicer
from resolute_searcher.servicers.driving import DrivingCalls
from resolute_searcher.servicers.planning import PlanningCalls
from resolute_searcher.servicers.renewal import RenewalCalls
from resolute_searcher.servicers.trials import TrialCalls


class SearcherServicer(RenewalCalls, TrialCalls, DrivingCalls, PlanningCalls, SearcherServiceServicer):
    """Answers all calls."""
