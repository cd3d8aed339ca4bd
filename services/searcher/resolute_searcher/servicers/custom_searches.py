"""The RPCs by which a client drives a custom search: it polls events and posts operations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import event_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import FailedPreconditionError, NotFoundError, UnavailableError
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.log.events import OperationsPosted
from resolute_searcher.log.operations import PostedOperation
from resolute_searcher.runtime.live_searches import Change, LiveSearches
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Aspect, Topic
from resolute_searcher.state_machine.search import Search
from resolute_searcher.store import log
from resolute_searcher.wire.contract import contract_event, stored_operation
from resolute_searcher.wire.operations import posted_from
from resolute_serving.notifier import Notifier

_CLIENT_EVENTS = frozenset(
    {"started", "trial_created", "validation_completed", "trial_closed", "trial_exited"}
)
"""Events that the client answers."""
_MAX_EVENTS = 500
_MAX_BYTES = 2 * 1024 * 1024
_MAX_WAIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class CustomSearchCalls:
    """Answers the clients of custom searches.

    Attributes:
        storage: The service's database.
        searches: The searches in memory.
        notifier: Wakes followers.
    """

    storage: Storage
    searches: LiveSearches
    notifier: Notifier[Topic]

    async def PollEvents(
        self, request: service_pb.PollEventsRequest, context: Any
    ) -> service_pb.PollEventsResponse:
        """Returns the unanswered events; waits until the search exists and has one."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        wait = request.max_wait.ToTimedelta().total_seconds()
        if not 0.0 <= wait <= _MAX_WAIT_SECONDS:
            raise invalid_field("max_wait", f"must be from 0 to {_MAX_WAIT_SECONDS:g} seconds, not {wait:g}")
        now = asyncio.get_running_loop().time
        end = now() + wait
        with self.notifier.subscribe((search_id, Aspect.LOG)) as changes:
            while True:
                try:
                    answered, over, reached = await self.searches.change(search_id, _client_view)
                    events = [] if over else await self._client_events(search_id, answered)
                    if events or over or now() >= end:
                        return _response(events, over=over, reached=reached)
                except NotFoundError:
                    # An experiment is there before its search: its submitter may ask too early.
                    if now() >= end:
                        raise
                if self.notifier.closed:
                    raise UnavailableError("the searcher stops; poll again")
                await changes.wait(end - now())

    async def PostOperations(
        self, request: service_pb.PostOperationsRequest, context: Any
    ) -> service_pb.PostOperationsResponse:
        """Records the operations with which the client answers an event."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        if request.answered_sequence < 1:
            raise invalid_field("answered_sequence", "must name the event that the operations answer")
        # An answer may have many megabytes of hyperparameters.
        operations = await asyncio.to_thread(_operations, request)
        event = OperationsPosted(operations, request.answered_sequence)
        await self.searches.change(search_id, lambda change: change.record(event), size=len(operations))
        return service_pb.PostOperationsResponse()

    async def _client_events(self, search_id: str, after: int) -> list[event_pb2.Event]:
        def work(connection: Connection) -> list[event_pb2.Event]:
            position = after
            while True:
                logged = log.read_logged(
                    connection, search_id, after=position, limit=_MAX_EVENTS, max_bytes=_MAX_BYTES
                )
                events = [
                    contract_event(entry.event)
                    for entry in logged
                    if entry.event.WhichOneof("kind") in _CLIENT_EVENTS
                ]
                if events or not logged:
                    return events
                position = logged[-1].event.sequence

        return await self.storage.read(work)


def _operations(request: service_pb.PostOperationsRequest) -> tuple[PostedOperation, ...]:
    return tuple(posted_from(stored_operation(operation)) for operation in request.operations)


def _client_view(change: Change) -> tuple[int, bool, Sequence[tuple[str, float]]]:
    search: Search = change.search
    if not search.state.kind.custom:
        raise FailedPreconditionError(
            f"the search decides by itself ({search.state.kind.name}); only custom searches have a client"
        )
    return search.state.answered, search.state.over, list(search.state.reached_by_trial.items())


def _response(
    events: list[event_pb2.Event], *, over: bool, reached: Sequence[tuple[str, float]]
) -> service_pb.PollEventsResponse:
    progress = [
        service_pb.PollEventsResponse.TrialProgress(trial_key=trial_key, progress=share)
        for trial_key, share in reached
    ]
    return service_pb.PollEventsResponse(events=events, progress=progress, over=over)
