"""The RPCs that list the log of a search, in full or in brief."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import event_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.storage.searcher.v1 import log_pb2
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.servicers.searches import MAX_BYTES
from resolute_searcher.store import log, search_rows
from resolute_searcher.wire.contract import contract_entry, stored_event_kind
from resolute_searcher.wire.moves import MoveColumns
from resolute_serving.pagination import decode_token, encode_token, page_size, parse_order_by

MAX_TRIAL_KEYS = 100
MAX_SEQUENCES = 1000
_MAX_READ = 5000
"""Most entries that one page looks at; a page of rare entries may hold none of them."""
_DEFAULT_MOVES = 10_000
_MAX_MOVES = 20_000
_MAX_MOVE_BYTES = 16 * 1024 * 1024
"""Most bytes of entries that one page of moves looks at."""
_KINDS = tuple(field.name for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["kind"].fields)


@dataclass(frozen=True, kw_only=True)
class ListingCalls:
    """Answers the calls that list the log.

    Attributes:
        storage: The service's database.
    """

    storage: Storage

    async def ListEvents(
        self, request: service_pb.ListEventsRequest, context: Any
    ) -> service_pb.ListEventsResponse:
        """Lists entries of the log that match the filters, in order."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        selection = _Selection(request)
        size = page_size(request.page_size)
        orders = parse_order_by(request.order_by or "sequence", allowed={"sequence": None})
        descending = orders[0].descending
        position = decode_token(request)
        after, before = request.after_sequence, None
        if position is not None:
            after, before = (after, position) if descending else (max(after, position), None)
        limit = size if selection.takes_all else _MAX_READ

        def work(connection: Connection) -> service_pb.ListEventsResponse:
            read = log.read_logged(
                connection,
                search_id,
                after=after,
                before=before,
                descending=descending,
                limit=limit,
                max_bytes=MAX_BYTES,
                sequences=selection.sequences,
            )
            page: list[log_pb2.LoggedEvent] = []
            end = 0
            for entry in read:
                end = entry.event.sequence
                if selection.takes(entry):
                    page.append(entry)
                if len(page) == size:
                    break
            last = search_rows.read_search(connection, search_id).last_sequence
            first = request.after_sequence + 1
            if selection.sequences:
                first, last = min(selection.sequences), max(selection.sequences)
            more = bool(read) and (end > first if descending else end < last)
            # Pages are long: their messages are made here, in the thread that reads, too.
            return service_pb.ListEventsResponse(
                entries=map(contract_entry, page),
                next_page_token=encode_token(request, end) if more else "",
            )

        return await self.storage.read(work)

    async def ListMoves(
        self, request: service_pb.ListMovesRequest, context: Any
    ) -> service_pb.ListMovesResponse:
        """Lists the changes of trials by entries of the log, in order."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        size = page_size(request.page_size, default=_DEFAULT_MOVES, most=_MAX_MOVES)
        if request.after_sequence < 0:
            raise invalid_field("after_sequence", f"must not be below 0 as {request.after_sequence} is")
        after = max(request.after_sequence, decode_token(request) or 0)

        def work(connection: Connection) -> service_pb.ListMovesResponse:
            read = log.read_logged(connection, search_id, after=after, limit=size, max_bytes=_MAX_MOVE_BYTES)
            columns = MoveColumns()
            columns.extend(read)
            message = columns.message()
            if columns.last and columns.last < search_rows.read_search(connection, search_id).last_sequence:
                message.next_page_token = encode_token(request, columns.last)
            return message

        return await self.storage.read(work)


class _Selection:
    """The filters of a request."""

    def __init__(self, request: service_pb.ListEventsRequest) -> None:
        if len(request.trial_keys) > MAX_TRIAL_KEYS:
            raise invalid_field(
                "trial_keys", f"must name at most {MAX_TRIAL_KEYS} trials, not {len(request.trial_keys)}"
            )
        for kind in request.kinds:
            if kind not in _KINDS:
                raise invalid_field("kinds", f"has {kind[:80]!r}; the kinds are {', '.join(_KINDS)}")
        if request.after_sequence < 0:
            raise invalid_field("after_sequence", f"must not be below 0 as {request.after_sequence} is")
        if len(request.sequences) > MAX_SEQUENCES:
            raise invalid_field(
                "sequences", f"must name at most {MAX_SEQUENCES} entries, not {len(request.sequences)}"
            )
        self.sequences = frozenset(request.sequences)
        self._trial_keys = frozenset(request.trial_keys)
        self._kinds = frozenset(map(stored_event_kind, request.kinds))

    @property
    def takes_all(self) -> bool:
        return not self._trial_keys and not self._kinds

    def takes(self, entry: log_pb2.LoggedEvent) -> bool:
        kind = entry.event.WhichOneof("kind")
        if self._kinds and kind not in self._kinds:
            return False
        return not self._trial_keys or not self._trial_keys.isdisjoint(_trial_keys(entry))


def _trial_keys(entry: log_pb2.LoggedEvent) -> set[str]:
    """Returns the keys of the trials that an entry is about."""
    kinds = [(message, message.WhichOneof("kind")) for message in (entry.event, *entry.operations)]
    return {getattr(getattr(one, kind), "request_id", "") for one, kind in kinds if kind}
