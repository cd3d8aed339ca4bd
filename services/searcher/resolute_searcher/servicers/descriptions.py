"""Builds the descriptions of searches in responses."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute_searcher.runtime.live_searches import LiveSearches
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.store import search_rows
from resolute_searcher.store.search_rows import SearchRow


@dataclass(frozen=True, kw_only=True)
class Descriptions:
    """Builds messages that describe searches.

    Attributes:
        storage: The service's database.
        searches: The searches in memory.
    """

    storage: Storage
    searches: LiveSearches

    async def of(self, search_id: str) -> pb.Search:
        """Returns the description of a search."""
        row = await self.storage.read(lambda c: search_rows.read_search(c, search_id))
        message = pb.Search(
            search_id=row.search_id,
            spec=row.spec,
            method_version=row.method_version,
            status=await self.status(row),
        )
        message.create_time.FromMicroseconds(round(row.created_at * 1e6))
        return message

    async def status(self, row: SearchRow) -> pb.SearchStatus:
        """Returns the status of a search."""
        # A search that is over has nothing more to say than its row: its log may be long.
        progress = (
            1.0
            if row.over
            else await self.searches.change(row.search_id, lambda change: change.search.state.progress())
        )
        return pb.SearchStatus(
            state=pb.SEARCH_STATE_SHUT_DOWN if row.over else pb.SEARCH_STATE_ACTIVE,
            progress=progress,
            trials_requested=row.requested,
            trials_closed=row.closed,
            last_event_sequence=row.last_sequence,
            last_action_sequence=row.last_action,
        )
