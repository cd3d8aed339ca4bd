"""Contents of committed checkpoints, for callers that cannot access the store."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import DataLossError, NotFoundError
from resolute_checkpoints import access
from resolute_checkpoints.blobs.base import BlobStore
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import Checkpoint, File, Home
from resolute_checkpoints.store import ranks, records, rows
from resolute_serving.context import Principal, TrialRun
from resolute_serving.database.engine import Database
from resolute_serving.validation import invalid

CHUNK = 1024 * 1024
"""Bytes of one message."""
MAX_HOLD_SECONDS = 3600.0
"""Longest time for which one call keeps a checkpoint."""
_HOLD_SECONDS = 60.0
_HOLD_AGAIN_SECONDS = 20.0


class Downloads:
    """Reads files of committed checkpoints.

    Args:
        database: The registry.
        stores: Opens the store of each checkpoint.
        workers: Threads for reading.
        clock: Clock for the time for which a checkpoint is kept for its reader.
        url_seconds: Validity of presigned URLs, in seconds.
    """

    def __init__(
        self,
        *,
        database: Database,
        stores: StoreFactory,
        workers: BlobWorkers,
        clock: Clock,
        url_seconds: float,
    ) -> None:
        self._database = database
        self._stores = stores
        self._workers = workers
        self._clock = clock
        self._url_seconds = url_seconds

    async def hold(self, checkpoint_id: str, *, seconds: float, principal: Principal) -> None:
        """Keeps a checkpoint from being deleted by a policy for some seconds from now on.

        Raises:
            NotFoundError: There is no such committed checkpoint, or its files are about to go.
        """
        now = self._clock.time()

        def check(connection: Connection, *, lock: bool = False) -> bool:
            checkpoint = records.find(connection, checkpoint_id, listed=False, lock=lock)
            access.require_reader(principal, checkpoint)
            access.require_files(checkpoint)
            return ranks.is_held(connection, checkpoint_id, until=now + 0.5 * seconds)

        def work(connection: Connection) -> None:
            check(connection, lock=True)
            ranks.hold(connection, checkpoint_id, until=now + seconds)

        # Thousands of small files are read one after the other: few of them write.
        if not await self._database.read(check):
            await self._database.write(work)

    async def download_urls(
        self, checkpoint_id: str, paths: Sequence[str], *, principal: Principal
    ) -> list[tuple[File, str]]:
        """Returns files with the URLs to get them from; nothing when the store has no URLs.

        Raises:
            NotFoundError: There is no such committed checkpoint, or no such file in it.
        """
        # A trial's process says itself for how long it reads.
        seconds = _HOLD_SECONDS if isinstance(principal, TrialRun) else self._url_seconds
        await self.hold(checkpoint_id, seconds=seconds, principal=principal)
        checkpoint, files = await self._readable(checkpoint_id, paths, principal)
        storage = checkpoint.storage
        homes = [file.home_in(checkpoint_id) for file in files]
        urls = await self._workers.run(lambda: _urls(self._stores.open(storage), homes), of=storage)
        return list(zip(files, urls, strict=False))

    async def read(
        self, checkpoint_id: str, path: str, *, offset: int, principal: Principal
    ) -> AsyncGenerator[bytes, None]:
        """Reads a file from an offset to its end, in chunks of at most ``CHUNK`` bytes.

        Raises:
            DataLossError: The file is gone, or no longer of the size that was committed.
            InvalidArgumentError: The offset is not within the file.
            NotFoundError: There is no such committed checkpoint, or no such file in it.
        """
        await self.hold(checkpoint_id, seconds=_HOLD_SECONDS, principal=principal)
        held_at = self._clock.monotonic()
        checkpoint, (file,) = await self._readable(checkpoint_id, [path], principal)
        if not 0 <= offset <= file.size:
            message = f"offset is {offset}; {path!r} has {file.size} bytes"
            raise invalid("offset", message)
        storage, home = checkpoint.storage, file.home_in(checkpoint_id)
        stream = await self._workers.open(
            lambda: self._stores.open(storage).open(home.checkpoint_id, home.path, offset=offset), of=storage
        )
        position = offset
        try:
            while position < file.size:
                data = await self._workers.run(
                    partial(stream.read, min(CHUNK, file.size - position)), of=storage
                )
                if not data:
                    raise _truncated(checkpoint, file, position)
                position += len(data)
                if self._clock.monotonic() - held_at > _HOLD_AGAIN_SECONDS:
                    # One that is deleted on request is read as far as its store lets it be.
                    with contextlib.suppress(NotFoundError):
                        await self.hold(checkpoint_id, seconds=_HOLD_SECONDS, principal=principal)
                    held_at = self._clock.monotonic()
                yield data
            if await self._workers.run(partial(stream.read, 1), of=storage):
                raise _grown(checkpoint, file)
        finally:
            self._workers.close_later(stream)

    async def _readable(
        self, checkpoint_id: str, paths: Sequence[str], principal: Principal
    ) -> tuple[Checkpoint, list[File]]:
        """Reads a checkpoint and the named ones of its files."""

        def work(connection: Connection) -> tuple[Checkpoint, list[File]]:
            checkpoint = records.find(connection, checkpoint_id, listed=False)
            access.require_reader(principal, checkpoint)
            access.require_files(checkpoint)
            files = rows.find_files(connection, checkpoint_id, paths)
            return checkpoint, [_named(checkpoint, files, path) for path in paths]

        return await self._database.read(work)


def _urls(store: BlobStore, homes: Sequence[Home]) -> list[str]:
    return [url for home in homes for url in store.download_urls(home.checkpoint_id, [home.path])]


def _named(checkpoint: Checkpoint, files: Mapping[str, File], path: str) -> File:
    if path not in files or files[path].is_directory:
        raise NotFoundError(
            f"{checkpoint} holds no file {path[:200]!r}; its description lists its files",
            resource=str(checkpoint),
        )
    return files[path]


def _truncated(checkpoint: Checkpoint, file: File, size: int) -> DataLossError:
    return DataLossError(
        f"{file.path!r} of {checkpoint} ends after {size} bytes and {file.size} were committed; "
        "restore it from a copy or use another checkpoint",
        resource=str(checkpoint),
    )


def _grown(checkpoint: Checkpoint, file: File) -> DataLossError:
    return DataLossError(
        f"{file.path!r} of {checkpoint} has more than the {file.size} bytes that were committed; "
        "restore it from a copy or use another checkpoint",
        resource=str(checkpoint),
    )
