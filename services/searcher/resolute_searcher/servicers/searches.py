"""The RPCs about whole searches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

from resolute.api.searcher.v1 import search_spec_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.contracts.clock import Clock
from resolute.errors import FailedPreconditionError
from resolute.storage.searcher.v1 import log_pb2
from resolute_searcher.identifiers import canonical_uuid
from resolute_searcher.runtime.live_searches import LiveSearches
from resolute_searcher.runtime.optuna_sampler import available
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Aspect, Topic
from resolute_searcher.servicers.descriptions import Descriptions
from resolute_searcher.spec.search import ModelSpec, SearchSpec
from resolute_searcher.spec.sizes import check_size
from resolute_searcher.store import log, search_rows
from resolute_searcher.wire.contract import contract_actions
from resolute_searcher.wire.spec import spec_from
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.notifier import Notifier

MAX_BYTES = 2 * 1024 * 1024
"""Most bytes of entries in one response."""
_ACTION_BATCH = 500
HEARTBEAT_SECONDS = 300.0
"""How often a quiet stream shows that it lives; pings notice a dead connection sooner."""


@dataclass(frozen=True, kw_only=True)
class SearchCalls:
    """Answers the calls about whole searches.

    Attributes:
        storage: The service's database.
        searches: The searches in memory.
        descriptions: Builds descriptions of searches.
        notifier: Wakes followers.
        clock: Measures heartbeats.
    """

    storage: Storage
    searches: LiveSearches
    descriptions: Descriptions
    notifier: Notifier[Topic]
    clock: Clock

    async def CreateSearch(
        self, request: service_pb.CreateSearchRequest, context: Any
    ) -> service_pb.CreateSearchResponse:
        """Creates a search, or returns the same one that was created before."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        # What only a newer version knows would take effect when this searcher is upgraded.
        request.spec.DiscardUnknownFields()
        spec = await asyncio.to_thread(_checked_spec, request.spec)
        if isinstance(spec.method, ModelSpec) and (missing := available(spec.method.sampler)):
            raise FailedPreconditionError(
                f"the sampler {spec.method.sampler} needs {missing} beside the searcher service; "
                "install resolute-train[search] there"
            )
        await self.searches.create(search_id, request.spec)
        return service_pb.CreateSearchResponse(search=await self.descriptions.of(search_id))

    async def GetSearch(
        self, request: service_pb.GetSearchRequest, context: Any
    ) -> service_pb.GetSearchResponse:
        """Returns a search."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        return service_pb.GetSearchResponse(search=await self.descriptions.of(search_id))

    async def FollowActions(
        self, request: service_pb.FollowActionsRequest, context: Any
    ) -> AsyncIterator[service_pb.FollowActionsResponse]:
        """Sends the actions after a position, and new ones until the search shuts down."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        await self._load(search_id)
        sent = request.after_sequence

        async def look(turn: Turn[str]) -> AsyncGenerator[service_pb.FollowActionsResponse, None]:
            nonlocal sent
            actions = self.searches.recent_actions(search_id, after=sent)
            if not actions:
                actions = await self._actions(search_id, sent)
                turn.unread.extend(turn.due if actions else ())
            if actions:
                sent = actions[-1].sequence
                # An entry may have thousands of actions, or megabytes of hyperparameters.
                yield await asyncio.to_thread(_actions_response, actions)
                if actions[-1].HasField("shutdown") and await self._is_last(search_id, sent):
                    turn.finished.extend(turn.due)

        responses = follow(
            [search_id],
            look,
            topics=lambda followed: [(followed, Aspect.ACTIONS)],
            notifier=self.notifier,
            clock=self.clock,
            pace=PollIntervals(recheck=HEARTBEAT_SECONDS, heartbeat=HEARTBEAT_SECONDS),
            quiet=service_pb.FollowActionsResponse(),
            on_stop="the searcher stops; follow again from the last action",
        )
        async for response in responses:
            yield response

    async def AcknowledgeActions(
        self, request: service_pb.AcknowledgeActionsRequest, context: Any
    ) -> service_pb.AcknowledgeActionsResponse:
        """Records that actions up to a position were applied durably."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        await self.storage.write(lambda c: search_rows.acknowledge(c, search_id, request.sequence))
        return service_pb.AcknowledgeActionsResponse()

    async def DeleteSearch(
        self, request: service_pb.DeleteSearchRequest, context: Any
    ) -> service_pb.DeleteSearchResponse:
        """Removes a search and leaves a tombstone."""
        await self.searches.delete(canonical_uuid(request.search_id, field="search_id"))
        return service_pb.DeleteSearchResponse()

    async def _actions(self, search_id: str, after: int) -> list[log_pb2.Action]:
        return await self.storage.read(
            lambda c: log.read_actions(c, search_id, after=after, limit=_ACTION_BATCH, max_bytes=MAX_BYTES)
        )

    async def _load(self, search_id: str) -> None:
        """Loads a search that waits for a suggestion, so that its request is answered."""
        row = await self.storage.read(lambda c: search_rows.read_search(c, search_id))
        if not row.over and row.spec.HasField("external"):
            await self.searches.change(search_id, lambda _: None)

    async def _is_last(self, search_id: str, action: int) -> bool:
        row = await self.storage.read(lambda c: search_rows.read_search(c, search_id))
        return row.last_action == action


def _actions_response(actions: list[log_pb2.Action]) -> service_pb.FollowActionsResponse:
    return service_pb.FollowActionsResponse(actions=contract_actions(actions))


def _checked_spec(message: search_spec_pb2.SearchSpec) -> SearchSpec:
    spec = spec_from(message)
    check_size(spec)
    return spec
