"""The RPC that watches the progress of searches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.contracts.clock import Clock
from resolute.errors import NotFoundError
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Aspect, Topic
from resolute_searcher.servicers.descriptions import Descriptions
from resolute_searcher.servicers.searches import HEARTBEAT_SECONDS
from resolute_searcher.store import search_rows
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.notifier import Notifier

MAX_SUBSCRIPTIONS = 1000
_MAX_KEY_BYTES = 256
_PACE = PollIntervals(recheck=HEARTBEAT_SECONDS, heartbeat=HEARTBEAT_SECONDS, pause=0.2)


@dataclass(frozen=True)
class _Watched:
    """A watched search."""

    key: str
    search_id: str


@dataclass(frozen=True, kw_only=True)
class WatchingCalls:
    """Answers the call that watches searches.

    Attributes:
        storage: The service's database.
        descriptions: Builds descriptions of searches.
        notifier: Wakes followers.
        clock: Measures heartbeats.
    """

    storage: Storage
    descriptions: Descriptions
    notifier: Notifier[Topic]
    clock: Clock

    async def WatchSearches(
        self, request: service_pb.WatchSearchesRequest, context: Any
    ) -> AsyncIterator[service_pb.WatchSearchesResponse]:
        """Sends the status of each search, then its changes."""
        sent: dict[str, pb.SearchStatus] = {}

        async def look(turn: Turn[_Watched]) -> AsyncGenerator[service_pb.WatchSearchesResponse, None]:
            for watched in turn.due:
                key, status = watched.key, await self._status_or_none(watched.search_id)
                if status is None:
                    turn.finished.append(watched)
                    not_found = service_pb.WatchSearchesResponse.NotFound()
                    yield service_pb.WatchSearchesResponse(key=key, not_found=not_found)
                elif status != sent.get(key):
                    sent[key] = status
                    yield service_pb.WatchSearchesResponse(key=key, status=status)

        responses = follow(
            _watched(request),
            look,
            topics=lambda watched: [(watched.search_id, Aspect.LOG), (watched.search_id, Aspect.PROGRESS)],
            notifier=self.notifier,
            clock=self.clock,
            pace=_PACE,
            quiet=service_pb.WatchSearchesResponse(),
            on_stop="the searcher stops; watch again",
        )
        async for response in responses:
            yield response

    async def _status_or_none(self, search_id: str) -> pb.SearchStatus | None:
        try:
            row = await self.storage.read(lambda c: search_rows.read_search(c, search_id))
            return await self.descriptions.status(row)
        except NotFoundError:
            return None


def _watched(request: service_pb.WatchSearchesRequest) -> list[_Watched]:
    many = len(request.subscriptions)
    if not 1 <= many <= MAX_SUBSCRIPTIONS:
        raise invalid_field("subscriptions", f"must be from 1 to {MAX_SUBSCRIPTIONS} searches, not {many}")
    watched: dict[str, _Watched] = {}
    for position, subscription in enumerate(request.subscriptions):
        where = f"subscriptions[{position}]"
        key = subscription.key
        if not key or len(key.encode()) > _MAX_KEY_BYTES or key in watched:
            raise invalid_field(f"{where}.key", f"must be 1 to {_MAX_KEY_BYTES} bytes, each key once")
        watched[key] = _Watched(key, canonical_uuid(subscription.search_id, field=f"{where}.search_id"))
    return list(watched.values())
