"""Creates whole searches, and rebuilds them from their logs."""

from __future__ import annotations

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_spec_pb2 as pb
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from resolute_searcher.log.entry import Entry
from resolute_searcher.spec.search import SearchSpec
from resolute_searcher.state_machine.search import Search
from resolute_searcher.store.fingerprint import fingerprint
from resolute_searcher.store.log import NewEntry, append, read_log
from resolute_searcher.store.packing import unpack
from resolute_searcher.store.schema import searches, trials
from resolute_searcher.store.search_rows import read_search
from resolute_searcher.store.snapshots import read_snapshot
from resolute_searcher.wire.spec import spec_from

_log = structlog.get_logger("searcher")


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
    row = connection.execute(
        sa.select(searches.c.spec, searches.c.deleted_at).where(searches.c.search_id == search_id)
    ).one_or_none()
    if row is not None:
        if row.deleted_at is not None:
            raise FailedPreconditionError(
                f"search {search_id} was deleted; create one with another identifier"
            )
        if pb.SearchSpec.FromString(row.spec) != spec:
            raise AlreadyExistsError(f"search {search_id} was created with another spec")
        return False
    connection.execute(
        sa.insert(searches),
        {
            "search_id": search_id,
            "spec": spec.SerializeToString(deterministic=True),
            "method_version": search.state.kind.label,
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
    append(connection, search_id, [NewEntry.of(search, first, previous="", event_id="", now=now)])
    return True


def load_search(connection: Connection, search_id: str) -> tuple[Search, str]:
    """Restores a search from its last valid snapshot, if any, and the entries of its log after that.

    Returns:
        The search, and the tip of its log.

    Raises:
        NotFoundError: There is no such search.
        UnavailableError: Its method, of another distribution, is not there now.
    """
    spec = spec_from(read_search(connection, search_id).spec)
    try:
        search, tip = _from_snapshot(connection, search_id, spec) or (Search(spec), "")
    except (NotFoundError, InvalidArgumentError) as failure:
        # It was there when the search was created: the search waits for it, instead of being taken for gone.
        raise UnavailableError(
            f"the method of search {search_id} is missing or fails: {failure}"
        ) from failure
    for recorded in read_log(connection, search_id, after=search.state.sequence):
        search.apply(recorded.entry)
        tip = recorded.tip
    reported = connection.execute(
        sa.select(trials.c.trial_key, trials.c.progress).where(
            trials.c.search_id == search_id, trials.c.progress > 0
        )
    )
    for trial_key, progress in reported:
        search.state.reach(trial_key, progress)
    return search, tip


def _from_snapshot(connection: Connection, search_id: str, spec: SearchSpec) -> tuple[Search, str] | None:
    code = fingerprint(spec)
    snapshot = read_snapshot(connection, search_id, code) if code is not None else None
    if snapshot is None:
        return None
    search = Search(spec)
    try:
        search.state.restore(unpack(snapshot.state))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a snapshot, the log is there
        _log.warning("snapshot passed over", search=search_id, sequence=snapshot.sequence, why=repr(error))
        return None
    return search, snapshot.tip
