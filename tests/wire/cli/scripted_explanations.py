"""Handlers of a scripted cluster for the calls that explanations are made of."""

# ruff: noqa: N802 - the contract names the handlers

from __future__ import annotations

from typing import Any

from wire.cli.scripted_state import State

from resolute.api.experiments.v1 import jobs_service_pb2, trials_service_pb2
from resolute.api.searcher.v1 import operation_pb2, search_pb2, searcher_service_pb2
from resolute_searcher.planning.answers import simulation_answer


class ExplanationHandlers:
    """Answers from the entries of a log, the transitions of a trial, and jobs, that a test adds."""

    state: State

    async def ListTrialTransitions(self, _request: Any, _context: Any) -> Any:
        return trials_service_pb2.ListTrialTransitionsResponse(transitions=self.state.transitions)

    async def GetRunEnvironment(self, request: Any, _context: Any) -> Any:
        return trials_service_pb2.GetRunEnvironmentResponse(
            run=request.run, environment=self.state.environments.get(request.run)
        )

    async def GetMachineUsage(self, _request: Any, _context: Any) -> Any:
        containers = [
            trials_service_pb2.GetMachineUsageResponse.Container(container_rank=rank, usage=usage)
            for rank, usage in enumerate(self.state.machines)
        ]
        return trials_service_pb2.GetMachineUsageResponse(run=1, containers=containers)

    async def ListEvents(self, request: Any, _context: Any) -> Any:
        entries = self.state.entries[:: -1 if "desc" in request.order_by else 1]
        return searcher_service_pb2.ListEventsResponse(entries=entries)

    async def SimulateSearch(self, request: Any, _context: Any) -> Any:
        # The searcher's own answer, which needs no service around it.
        answer = simulation_answer(request.SerializeToString())
        return searcher_service_pb2.SimulateSearchResponse.FromString(answer)

    async def GetSearch(self, request: Any, _context: Any) -> Any:
        status = search_pb2.SearchStatus(
            state=search_pb2.SEARCH_STATE_ACTIVE, progress=0.25, trials_requested=2, trials_closed=1
        )
        search = search_pb2.Search(search_id=request.search_id, status=status)
        return searcher_service_pb2.GetSearchResponse(search=search)

    async def GetOperation(self, _request: Any, _context: Any) -> Any:
        return searcher_service_pb2.GetOperationResponse(
            operation=operation_pb2.TrialOperation(length=4, completed=False)
        )

    async def ListJobs(self, _request: Any, _context: Any) -> Any:
        return jobs_service_pb2.ListJobsResponse(jobs=self.state.jobs)
