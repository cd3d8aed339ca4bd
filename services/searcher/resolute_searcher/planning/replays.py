"""Replays logs of searches, in a thread or in a worker process."""

from __future__ import annotations

import json

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.state_machine.replay import replay
from resolute_searcher.store import log, search_rows
from resolute_searcher.wire.contract import contract_entry
from resolute_searcher.wire.spec import spec_from
from resolute_serving.database.engine import create_engine, typed_errors

_MAX_ENTRY_BYTES = 2 * 1024 * 1024


def replay_answer(database_url: str, search_id: str, until: int | None) -> bytes:
    """Replays the decisions of a search's log; returns a serialized response.

    Args:
        database_url: Where the log is.
        search_id: The search.
        until: Position of the last event to replay; None for all.

    Raises:
        NotFoundError: There is no such search.
    """
    engine = create_engine(database_url, name="searcher", writes=False)
    try:
        with typed_errors("searcher"), engine.begin() as connection:
            return replay_on(connection, search_id, until).SerializeToString()
    finally:
        engine.dispose()


def replay_on(connection: Connection, search_id: str, until: int | None) -> service_pb.ReplaySearchResponse:
    """Decides the log of a search again, on an open connection; see ``replay_answer``."""
    row = search_rows.read_search(connection, search_id)
    entries = (recorded.entry for recorded in log.read_log(connection, search_id))
    outcome = replay(spec_from(row.spec), (e for e in entries if until is None or e.sequence <= until))
    before = outcome.state["sequence"] - 1
    last = log.read_logged(connection, search_id, after=before, limit=1, max_bytes=_MAX_ENTRY_BYTES)
    return service_pb.ReplaySearchResponse(
        equal=outcome.equal,
        first_difference=outcome.first_difference,
        detail=outcome.detail,
        state_json=json.dumps(outcome.state),
        last=contract_entry(last[0]) if last else None,
    )
