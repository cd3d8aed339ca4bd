"""The RPC that watches how far searches are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import NotFoundError, UnavailableError
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.runtime.watchers import StatusWatcher
from resolute_searcher.servicers.searches import HEARTBEAT_SECONDS, SearchCalls
from resolute_searcher.store import search_rows

MAX_SUBSCRIPTIONS = 1000
_MAX_KEY_BYTES = 256
_PAUSE_SECONDS = 0.2
"""Between two answers, however often searches change."""


class WatchingCalls(SearchCalls):
    """Answers the call that watches searches."""

    async def WatchSearches(
        self, request: service_pb.WatchSearchesRequest, context: Any
    ) -> AsyncIterator[service_pb.WatchSearchesResponse]:
        """Sends the status of each search, and again after each change."""
        subscriptions = _subscriptions(request)
        search_ids = dict.fromkeys(subscriptions.values())
        sent: dict[str, pb.SearchStatus] = {}
        with self.watchers.watch_statuses(search_ids) as watcher:
            while subscriptions:
                changed = watcher.take()
                for key, search_id in list(subscriptions.items()):
                    if search_id not in changed:
                        continue
                    status = await self._status_or_none(search_id)
                    if status is None:
                        del subscriptions[key]
                        not_found = service_pb.WatchSearchesResponse.NotFound()
                        yield service_pb.WatchSearchesResponse(key=key, not_found=not_found)
                    elif status != sent.get(key):
                        sent[key] = status
                        yield service_pb.WatchSearchesResponse(key=key, status=status)
                if self.watchers.closed:
                    raise UnavailableError("the searcher stops; watch again")
                if not await _wait(watcher):
                    yield service_pb.WatchSearchesResponse()
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _status_or_none(self, search_id: str) -> pb.SearchStatus | None:
        try:
            row = await self.storage.read(lambda c: search_rows.read_search(c, search_id))
            return await self.status(row)
        except NotFoundError:
            return None


async def _wait(watcher: StatusWatcher) -> bool:
    try:
        await asyncio.wait_for(watcher.wait(), HEARTBEAT_SECONDS)
    except asyncio.TimeoutError:
        return False
    return True


def _subscriptions(request: service_pb.WatchSearchesRequest) -> dict[str, str]:
    """Reads the searches by key."""
    many = len(request.subscriptions)
    if not 1 <= many <= MAX_SUBSCRIPTIONS:
        raise invalid_field("subscriptions", f"must be from 1 to {MAX_SUBSCRIPTIONS} searches, not {many}")
    found: dict[str, str] = {}
    for position, subscription in enumerate(request.subscriptions):
        where = f"subscriptions[{position}]"
        key = subscription.key
        if not key or len(key.encode()) > _MAX_KEY_BYTES or key in found:
            raise invalid_field(f"{where}.key", f"must be 1 to {_MAX_KEY_BYTES} bytes, each key once")
        found[key] = canonical_uuid(subscription.search_id, field=f"{where}.search_id")
    return found
