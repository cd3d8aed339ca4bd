"""The RPCs of previews, simulations and replays, which run in worker processes, one for each caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.planning.answers import preview_answer, simulation_answer
from resolute_searcher.planning.replays import replay_answer, replay_on
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.store import search_rows
from resolute_serving.context import actor
from resolute_serving.workers.pool import WorkerPool

_SMALL_BYTES = 8 * 1024
"""Specs of up to this size are previewed at once: that takes milliseconds."""


_SHORT_LOG = 500
"""Logs of up to as many events are replayed in a thread, sooner than a process could start."""


@dataclass(frozen=True, kw_only=True)
class PlanningCalls:
    """Answers the calls for previews, simulations and replays.

    Attributes:
        storage: The service's database.
        planning_pool: Worker processes for long calculations.
    """

    storage: Storage
    planning_pool: WorkerPool

    async def PreviewSearch(
        self, request: service_pb.PreviewSearchRequest, context: Any
    ) -> service_pb.PreviewSearchResponse:
        """Previews the trials of a spec."""
        data = request.SerializeToString()
        if len(data) <= _SMALL_BYTES:
            answer = preview_answer(data)
        else:
            answer = await self.planning_pool.run(preview_answer, data, caller=actor())
        return service_pb.PreviewSearchResponse.FromString(answer)

    async def SimulateSearch(
        self, request: service_pb.SimulateSearchRequest, context: Any
    ) -> service_pb.SimulateSearchResponse:
        """Simulates a spec in virtual time."""
        data = request.SerializeToString()
        answer = await self.planning_pool.run(simulation_answer, data, caller=actor())
        return service_pb.SimulateSearchResponse.FromString(answer)

    async def ReplaySearch(
        self, request: service_pb.ReplaySearchRequest, context: Any
    ) -> service_pb.ReplaySearchResponse:
        """Repeats the decisions of the log, and compares them."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        until = request.until_sequence if request.HasField("until_sequence") else None
        if until is not None and until < 1:
            raise invalid_field("until_sequence", f"must be the position of an event, from 1, not {until}")
        row = await self.storage.read(lambda c: search_rows.read_search(c, search_id))
        if row.last_sequence <= _SHORT_LOG:
            return await self.storage.read(lambda c: replay_on(c, search_id, until))
        url = self.storage.database.url
        answer = await self.planning_pool.run(replay_answer, url, search_id, until, caller=actor())
        return service_pb.ReplaySearchResponse.FromString(answer)
