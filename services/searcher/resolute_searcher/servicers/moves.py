"""The RPC that lists the log of a search in brief."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.identifiers import canonical_uuid, invalid_field
from resolute_searcher.servicers.base import BaseCalls
from resolute_searcher.store import log, search_rows
from resolute_searcher.wire.moves import MoveColumns
from resolute_serving.pagination import decode_token, encode_token, page_size

_DEFAULT_ENTRIES = 10_000
_MAX_ENTRIES = 20_000
_MAX_BYTES = 16 * 1024 * 1024
"""Most bytes of entries that one page looks at."""


class MoveCalls(BaseCalls):
    """Answers the call that lists moves."""

    async def ListMoves(
        self, request: service_pb.ListMovesRequest, context: Any
    ) -> service_pb.ListMovesResponse:
        """Lists what entries of the log did to trials, in order."""
        search_id = canonical_uuid(request.search_id, field="search_id")
        size = page_size(request.page_size, default=_DEFAULT_ENTRIES, most=_MAX_ENTRIES)
        if request.after_sequence < 0:
            raise invalid_field("after_sequence", f"must not be below 0 as {request.after_sequence} is")
        after = max(request.after_sequence, decode_token(request) or 0)

        def work(connection: Connection) -> service_pb.ListMovesResponse:
            read = log.read_logged(connection, search_id, after=after, limit=size, max_bytes=_MAX_BYTES)
            columns = MoveColumns()
            columns.extend(read)
            message = columns.message()
            if columns.last and columns.last < search_rows.read_search(connection, search_id).last_sequence:
                message.next_page_token = encode_token(request, columns.last)
            return message

        return await self.storage.read(work)
