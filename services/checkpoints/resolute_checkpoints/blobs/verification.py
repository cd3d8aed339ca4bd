"""Compares the content of files with the digests that their writers committed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from weakref import WeakValueDictionary

from resolute.contracts.files.digests import format_digest, new_hash
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_checkpoints.blobs.base import BlobStore, Fault
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import File, Storage

_BLOCK_BYTES = 1 << 18
_BATCH_BYTES = 64 << 20
_BATCH_FILES = 1000
_REMEMBERED = 50_000

_FileKey = tuple[int, int, int, int, str]


class KnownDigests:
    """Digests of read files, by attributes that change with the content.

    So a commit that is repeated after a lost answer, and files that several checkpoints share, are read once.
    Several threads may use it.

    Args:
        limit: Largest number of digests. The least recently used ones are removed first.
    """

    def __init__(self, *, limit: int = _REMEMBERED) -> None:
        self._limit = limit
        self._digests: OrderedDict[_FileKey, str] = OrderedDict()
        self._lock = threading.Lock()

    def digest(self, descriptor: int, algorithm: str, *, wanted: Callable[[], bool]) -> str:
        """Returns the digest of an open file.

        Args:
            descriptor: The file, at its beginning.
            algorithm: How it is summed up.
            wanted: Asked while the file is read; once false, reading ends.

        Raises:
            FailedPreconditionError: Digests of that kind cannot be computed here.
            UnavailableError: It is not wanted any more.
        """
        facts = os.fstat(descriptor)
        key = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, algorithm)
        with self._lock:
            known = self._digests.get(key)
            if known is not None:
                self._digests.move_to_end(key)
                return known
        digest_read = _read(descriptor, algorithm, wanted)
        with self._lock:
            self._digests[key] = digest_read
            while len(self._digests) > self._limit:
                self._digests.popitem(last=False)
        return digest_read


def _read(descriptor: int, algorithm: str, wanted: Callable[[], bool]) -> str:
    summed = new_hash(algorithm)
    buffer = memoryview(bytearray(_BLOCK_BYTES))
    while count := os.readv(descriptor, [buffer]):
        if not wanted():
            raise UnavailableError("files are no longer compared: the call has ended")
        summed.update(buffer[:count])
    return format_digest(summed, algorithm)


def can_compute(digest: str) -> bool:
    """Returns whether the algorithm of a digest is available here; False for an empty digest."""
    try:
        new_hash(digest.partition(":")[0])
    except FailedPreconditionError:
        return False
    return True


class Verifier:
    """Reads files of checkpoints in threads of its own, so that long reads delay no other call.

    A script determines the size of its files, and reading a large sparse file may take days. So the callers
    of one workspace use at most half of a storage's threads.

    Args:
        workers: The threads.
    """

    def __init__(self, workers: BlobWorkers) -> None:
        self._workers = workers
        self._shares: WeakValueDictionary[tuple[str, Storage], asyncio.Semaphore] = WeakValueDictionary()

    async def damaged(
        self, store: BlobStore, checkpoint_id: str, files: Sequence[File], *, storage: Storage, caller: str
    ) -> list[Fault]:
        """Returns the files whose content differs from what was committed. Stops when cancelled.

        Args:
            store: Where the files are; they are there, with their sizes.
            checkpoint_id: The checkpoint.
            files: Its files; those without a digest, or with one of an unknown kind, are left out.
            storage: Whose store that is.
            caller: Whose turn it takes, such as a workspace.
        """
        over = threading.Event()
        most = max(1, self._workers.share // 2)
        share = self._shares.setdefault((caller, storage), asyncio.Semaphore(most))

        async def read(batch: Sequence[File]) -> Sequence[Fault]:
            work = partial(store.damaged, checkpoint_id, batch, wanted=lambda: not over.is_set())
            async with share:
                return await self._workers.run(work, of=storage)

        try:
            batches = _batches([file for file in files if file.digest])
            faults_of_all = await asyncio.gather(*map(read, batches))
        finally:
            over.set()
        return [fault for faults in faults_of_all for fault in faults]


def _batches(files: Sequence[File]) -> Iterator[list[File]]:
    """Divides files into parts that threads process in turn with those of other checkpoints."""
    batch: list[File] = []
    size = 0
    for file in files:
        batch.append(file)
        size += file.size
        if size >= _BATCH_BYTES or len(batch) == _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
