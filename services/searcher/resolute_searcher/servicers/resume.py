"""The RPCs that extend a search and retry a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.log.events import Retried
from resolute_searcher.runtime.live_searches import Change, LiveSearches
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_searcher.servicers.descriptions import Descriptions
from resolute_searcher.servicers.trials import operation_status
from resolute_searcher.store import log
from resolute_searcher.wire.contract import stored_extension
from resolute_searcher.wire.events import extension_from


@dataclass(frozen=True, kw_only=True)
class ResumeCalls:
    """Answers the calls that continue ended searches and trials.

    Attributes:
        storage: The service's database.
        searches: The searches in memory.
        trial_index: Looks up the searches of trials.
        descriptions: Builds descriptions of searches.
    """

    storage: Storage
    searches: LiveSearches
    trial_index: TrialIndex
    descriptions: Descriptions

    async def ExtendSearch(
        self, request: service_pb.ExtendSearchRequest, context: Any
    ) -> service_pb.ExtendSearchResponse:
        """Extends a search that is over."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        event_id = _event_id(request.request_id)
        extension = extension_from(stored_extension(request.extension))
        if not await self._is_recorded(search_id, event_id):
            await self.searches.change(search_id, lambda change: change.record(extension, event_id=event_id))
        return service_pb.ExtendSearchResponse(search=await self.descriptions.of(search_id))

    async def RetryTrial(
        self, request: service_pb.RetryTrialRequest, context: Any
    ) -> service_pb.RetryTrialResponse:
        """Retries a failed trial under the same key."""
        search_id, trial_key = await self.trial_index.find(request.trial_id)
        event_id = _event_id(request.request_id)
        taken = await self._is_recorded(search_id, event_id)

        def act(change: Change) -> service_pb.RetryTrialResponse:
            if not taken:
                change.record(Retried(trial_key), event_id=event_id)
            return service_pb.RetryTrialResponse(operation=operation_status(change.search, trial_key))

        return await self.searches.change(search_id, act)

    async def _is_recorded(self, search_id: str, event_id: str) -> bool:
        # Unlike with other events, the state does not tell whether this one came before.
        return await self.storage.read(lambda c: log.has_event(c, search_id, event_id))


def _event_id(request_id: str) -> str:
    if not request_id or request_id.startswith(log.OWN_EVENT_PREFIX):
        raise invalid_field(
            "request_id",
            f"must identify the request across retries, and not begin with {log.OWN_EVENT_PREFIX!r}",
        )
    return request_id
