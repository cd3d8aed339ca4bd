"""Takes snapshots of long searches, so that they load fast.

A snapshot is computed from the previous one and the log entries after it. So it holds only durable data, and
decisions never wait for it. A worker process takes a snapshot each time the log has grown by a share of its
length, so that the cost per event does not grow with the search.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import structlog
from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_spec_pb2
from resolute.errors import ConflictError, NotFoundError, ResoluteError, UnavailableError
from resolute.storage.searcher.v1 import log_pb2
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.state_machine.search import Search
from resolute_searcher.store import search_rows, snapshots
from resolute_searcher.store.fingerprint import fingerprint
from resolute_searcher.store.packing import pack, unpack
from resolute_searcher.store.snapshots import Snapshot, StoredEntry
from resolute_searcher.wire.log import entry_from
from resolute_searcher.wire.spec import spec_from
from resolute_serving.workers.pool import WorkerPool

FIRST = 5000
"""Shortest log, in entries, that a snapshot is worth, and least growth that the next one is worth."""
_SHARE = 4
_BATCH = 20_000
_NEVER = 1 << 62
_log = structlog.get_logger("searcher")


@dataclass(frozen=True, slots=True)
class _Step:
    """The input for the next snapshot of a search."""

    spec: search_spec_pb2.SearchSpec
    code: str
    before: bytes | None
    new: Sequence[StoredEntry]


class Snapshotter:
    """Takes snapshots, one at a time, in a task of its own.

    Args:
        storage: The service's database.
        pool: Worker processes that compute snapshots.
        first: See `FIRST`.
    """

    def __init__(self, storage: Storage, pool: WorkerPool, *, first: int = FIRST) -> None:
        self._storage = storage
        self._pool = pool
        self._first = first
        # From which position on a search is looked at again.
        self._next: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    def notify(self, search_id: str, sequence: int) -> None:
        """Schedules a snapshot of a search, if its log has grown enough.

        Args:
            search_id: The search.
            sequence: Position of its last durable entry.
        """
        if sequence < self._next.get(search_id, self._first):
            return
        self._lengths[search_id] = sequence
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="searcher-snapshots")

    async def wait_until_idle(self) -> None:
        """Waits until no snapshot is scheduled."""
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Stops. Snapshots that are due are made when their searches continue."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        while self._lengths:
            search_id, sequence = self._lengths.popitem()
            # Whatever fails is tried again, but not with every event.
            self._next[search_id] = sequence + self._first
            try:
                await self._keep(search_id)
            except (NotFoundError, UnavailableError, ConflictError):
                continue
            except ResoluteError as error:
                _log.warning("snapshot failed", search=search_id, why=str(error))
            except Exception as error:  # noqa: BLE001 - other searches get theirs
                _log.error("snapshot failed", search=search_id, exc_info=error)
                await self._delete_snapshot(search_id)

    async def _delete_snapshot(self, search_id: str) -> None:
        """Removes a snapshot from which the next one could not be made; then one is made of the whole log."""
        with contextlib.suppress(ResoluteError):
            await self._storage.write(lambda c: snapshots.delete_snapshot(c, search_id))

    async def _keep(self, search_id: str) -> None:
        while True:
            step = await self._storage.read(lambda c: self._next_step(c, search_id))
            if isinstance(step, int):
                self._next[search_id] = step
                return
            state = await self._pool.run(
                advance_snapshot, step.spec.SerializeToString(), search_id, step.before, step.new
            )
            last = step.new[-1]
            snapshot = Snapshot(last.sequence, last.tip, step.code, state)
            await self._storage.write(
                partial(snapshots.write_snapshot, search_id=search_id, snapshot=snapshot)
            )

    def _next_step(self, connection: Connection, search_id: str) -> _Step | int:
        """Reads what makes the next snapshot; the position that is worth one, if the log is not there yet."""
        row = search_rows.read_search(connection, search_id)
        code = fingerprint(spec_from(row.spec))
        if code is None:
            return _NEVER
        until = snapshots.snapshot_sequence(connection, search_id, code)
        due = until + max(self._first, until // _SHARE)
        if row.last_sequence < due:
            return due
        before = snapshots.read_snapshot(connection, search_id, code)
        # A long log without a snapshot is folded in steps, each no longer than all before it.
        new = snapshots.read_stored_entries(connection, search_id, after=until, limit=max(_BATCH, until))
        return _Step(row.spec, code, before.state if before else None, new)


def advance_snapshot(spec: bytes, search_id: str, before: bytes | None, new: Sequence[StoredEntry]) -> bytes:
    """Returns the packed state of a search after further entries.

    Args:
        spec: The search's spec, serialized.
        search_id: The search.
        before: Its packed state before them; None at the beginning of its log.
        new: The entries.

    Raises:
        CorruptStateError: `before` is damaged.
    """
    search = Search(spec_from(search_spec_pb2.SearchSpec.FromString(spec)))
    if before is not None:
        search.state.restore(unpack(before))
    for raw in new:
        message = log_pb2.LoggedEvent.FromString(raw.entry)
        search.apply(entry_from(message, search_id=search_id, last_action=raw.last_action, draws=raw.draws))
    return pack(search.state.snapshot())
