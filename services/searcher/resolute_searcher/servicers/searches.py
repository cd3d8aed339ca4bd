"""The RPCs about whole searches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import UnavailableError
from resolute_searcher.live import LiveSearches
from resolute_searcher.names import canonical_uuid
from resolute_searcher.owners import Owners
from resolute_searcher.preview import preview
from resolute_searcher.replay import Replay, replay
from resolute_searcher.servicers.trials import TrialCalls
from resolute_searcher.spec_messages import spec_from
from resolute_searcher.storage import Storage
from resolute_searcher.store import log, rows
from resolute_searcher.store.rows import SearchRow
from resolute_searcher.watching import Watchers
from resolute_serving.pages import decode_token, encode_token, page_size

_MOST_BYTES = 2 * 1024 * 1024
_ACTIONS_AT_ONCE = 500
HEARTBEAT_SECONDS = 15.0
"""How often a stream of actions shows that it lives."""
POLL_SECONDS = 1.0
"""How often a stream looks for what other replicas wrote."""


class SearcherServicer(TrialCalls):
    """Answers all calls; here are those about whole searches.

    Args:
        storage: Where the logs are.
        searches: The searches in memory.
        owners: Know the searches of trials.
        watchers: Wake the streams.
        shared: Whether other processes write to the database.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        searches: LiveSearches,
        owners: Owners,
        watchers: Watchers,
        shared: bool,
    ) -> None:
        super().__init__(storage=storage, searches=searches, owners=owners)
        self._watchers = watchers
        self._look_again = POLL_SECONDS if shared else HEARTBEAT_SECONDS

    async def CreateSearch(
        self, request: service_pb.CreateSearchRequest, context: Any
    ) -> service_pb.CreateSearchResponse:
        """Creates a search, or finds the same one."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        await self._searches.create(search_id, request.spec)
        return service_pb.CreateSearchResponse(search=await self._describe(search_id))

    async def GetSearch(
        self, request: service_pb.GetSearchRequest, context: Any
    ) -> service_pb.GetSearchResponse:
        """Gives the state of a search."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        return service_pb.GetSearchResponse(search=await self._describe(search_id))

    async def FollowActions(
        self, request: service_pb.FollowActionsRequest, context: Any
    ) -> AsyncIterator[service_pb.FollowActionsResponse]:
        """Sends the actions beyond a position as they come, up to the shutdown."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        after = request.after_sequence
        quiet = 0.0
        with self._watchers.watch(search_id) as watcher:
            in_log = True
            while True:
                actions = await self._actions(search_id, after) if in_log else watcher.take(after)
                if actions is None:
                    in_log = True
                    continue
                if actions:
                    yield service_pb.FollowActionsResponse(actions=actions)
                    after, quiet = actions[-1].sequence, 0.0
                    if actions[-1].HasField("shutdown") and await self._is_last(search_id, after):
                        return
                    continue
                if self._watchers.closed:
                    raise UnavailableError("the searcher stops; follow again from the last action")
                woken = await watcher.wait(self._look_again)
                in_log = not woken
                quiet += 0.0 if woken else self._look_again
                if quiet >= HEARTBEAT_SECONDS:
                    yield service_pb.FollowActionsResponse()
                    quiet = 0.0

    async def AcknowledgeActions(
        self, request: service_pb.AcknowledgeActionsRequest, context: Any
    ) -> service_pb.AcknowledgeActionsResponse:
        """Notes that actions up to a position were applied for good."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        await self._storage.write(lambda c: rows.acknowledge(c, search_id, request.sequence))
        return service_pb.AcknowledgeActionsResponse()

    async def ListEvents(
        self, request: service_pb.ListEventsRequest, context: Any
    ) -> service_pb.ListEventsResponse:
        """Lists the log."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        size = page_size(request.page_size)
        after = decode_token(request) or 0
        logged = await self._storage.read(
            lambda c: log.read_logged(c, search_id, after=after, limit=size, most_bytes=_MOST_BYTES)
        )
        token = ""
        if logged:
            last = logged[-1].event.sequence
            row = await self._storage.read(lambda c: rows.read_search(c, search_id))
            token = encode_token(request, last) if last < row.last_sequence else ""
        return service_pb.ListEventsResponse(entries=logged, next_page_token=token)

    async def ReplaySearch(
        self, request: service_pb.ReplaySearchRequest, context: Any
    ) -> service_pb.ReplaySearchResponse:
        """Decides the log again and compares."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        until = request.until_sequence

        def work(connection: Connection) -> Replay:
            row = rows.read_search(connection, search_id)
            entries = (recorded.entry for recorded in log.read_log(connection, search_id))
            return replay(spec_from(row.spec), (e for e in entries if not until or e.sequence <= until))

        outcome = await self._storage.read(work)
        return service_pb.ReplaySearchResponse(
            equal=outcome.equal,
            first_difference=outcome.first_difference,
            detail=outcome.detail,
            state_json=json.dumps(outcome.state),
        )

    async def PreviewSearch(
        self, request: service_pb.PreviewSearchRequest, context: Any
    ) -> service_pb.PreviewSearchResponse:
        """Tells what a spec would run."""
        told = preview(spec_from(request.spec))
        brackets = [
            service_pb.PreviewSearchResponse.Bracket(
                trials=bracket.trials,
                concurrent_trials=bracket.concurrent_trials,
                endings=[
                    service_pb.PreviewSearchResponse.Ending(length=length, trials=trials)
                    for length, trials in bracket.endings
                ],
            )
            for bracket in told.brackets
        ]
        return service_pb.PreviewSearchResponse(brackets=brackets, total_units=told.total_units)

    async def DeleteSearch(
        self, request: service_pb.DeleteSearchRequest, context: Any
    ) -> service_pb.DeleteSearchResponse:
        """Removes a search and leaves a tombstone."""
        await self._searches.delete(canonical_uuid(request.search_id, field="search_id"))
        return service_pb.DeleteSearchResponse()

    async def _actions(self, search_id: str, after: int) -> list[pb.Action]:
        return await self._storage.read(
            lambda c: log.read_actions(
                c, search_id, after=after, limit=_ACTIONS_AT_ONCE, most_bytes=_MOST_BYTES
            )
        )

    async def _is_last(self, search_id: str, action: int) -> bool:
        row = await self._storage.read(lambda c: rows.read_search(c, search_id))
        return row.last_action == action

    async def _describe(self, search_id: str) -> pb.Search:
        row = await self._storage.read(lambda c: rows.read_search(c, search_id))
        # A search that is over has nothing more to say than its row: its log may be long.
        progress = (
            1.0
            if row.over
            else await self._searches.change(search_id, lambda change: change.search.progress())
        )
        return _search_message(row, progress=progress)


def _search_message(row: SearchRow, *, progress: float) -> pb.Search:
    message = pb.Search(
        search_id=row.search_id,
        state=pb.SEARCH_STATE_SHUT_DOWN if row.over else pb.SEARCH_STATE_ACTIVE,
        spec=row.spec,
        method_version=row.method_version,
        progress=progress,
        trials_requested=row.requested,
        trials_closed=row.closed,
        last_event_sequence=row.last_sequence,
        last_action_sequence=row.last_action,
    )
    message.create_time.FromMicroseconds(round(row.created_at * 1e6))
    return message
