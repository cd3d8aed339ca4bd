"""Whole searches: begun, and rebuilt from their logs."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_pb2 as pb
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
)
from resolute_searcher.schema import searches, trials
from resolute_searcher.search import Entry, Search
from resolute_searcher.spec_messages import spec_from
from resolute_searcher.store.log import Append, append, read_log
from resolute_searcher.store.rows import read_search


def create_search(
    connection: Connection, search_id: str, spec: pb.SearchSpec, search: Search, first: Entry, now: float
) -> bool:
    """Writes a new search with the first entry of its log.

    Returns:
        Whether it was new; False when the same search is there already.

    Raises:
        FailedPreconditionError: It was deleted.
        AlreadyExistsError: It is there with another spec.
    """
    found = connection.execute(
        sa.select(searches.c.spec, searches.c.deleted_at).where(searches.c.search_id == search_id)
    ).one_or_none()
    if found is not None:
        if found.deleted_at is not None:
            raise FailedPreconditionError(
                f"search {search_id} was deleted; create one with another identifier"
            )
        if pb.SearchSpec.FromString(found.spec) != spec:
            raise AlreadyExistsError(f"search {search_id} was created with another spec")
        return False
    connection.execute(
        sa.insert(searches),
        {
            "search_id": search_id,
            "spec": spec.SerializeToString(deterministic=True),
            "method_version": search.kind.label,
            "last_sequence": 0,
            "tip": "",
            "last_action": 0,
            "acknowledged": 0,
            "over": False,
            "requested": 0,
            "closed": 0,
            "created_at": now,
        },
    )
    append(connection, search_id, [Append.of(search, first, previous="", event_id="", now=now)])
    return True


def load_search(connection: Connection, search_id: str) -> tuple[Search, str]:
    """Rebuilds a search from its log.

    Returns:
        The search, and the tip of its log.

    Raises:
        NotFoundError: There is no such search.
    """
    search = Search(spec_from(read_search(connection, search_id).spec))
    tip = ""
    for recorded in read_log(connection, search_id):
        search.apply(recorded.entry)
        tip = recorded.tip
    reported = connection.execute(
        sa.select(trials.c.request_id, trials.c.progress).where(
            trials.c.search_id == search_id, trials.c.progress > 0
        )
    )
    for request_id, progress in reported:
        search.reach(request_id, progress)
    return search, tip
