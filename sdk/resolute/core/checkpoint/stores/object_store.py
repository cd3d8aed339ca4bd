"""Checkpoints in an object store that this process reaches with credentials of its own."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from resolute.contracts.object_stores.client import ObjectStoreClient
from resolute.core.checkpoint.files.hashing_file import HashingFile
from resolute.core.checkpoint.files.manifest import FileEntry, algorithms_of, compare, make_directories
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.ranges import (
    MAX_PARALLEL_LARGE_FILES,
    MAX_PARALLEL_RANGES,
    in_ranges,
    is_large,
)
from resolute.core.checkpoint.files.record import RECORDS
from resolute.core.checkpoint.stores.base import check_identifier
from resolute.errors import InvalidArgumentError, NotFoundError
from resolute.transfer.digests import PREFERRED, new_hash, written
from resolute.transfer.disk import full_disk_errors
from resolute.transfer.progress import Progress, count_attempt
from resolute.transfer.retries import retry_transfer
from resolute.trial_errors import CheckpointNotFound

_THREADS = 8
_OUTAGE_TIMEOUT = 120.0
_T = TypeVar("_T")
_R = TypeVar("_R")


class ObjectStore:
    """Keeps each file as the object ``[prefix/]checkpoint_id/path``, for any tool to read.

    Args:
        objects: The objects of the bucket.
        prefix: Begins all names; without slashes around it.
        outage_timeout: Seconds to wait for a store that is away or busy.
        sleep: Waits some seconds.
        watch: Makes what counts the bytes of a transfer.
    """

    accepts_unrecorded = False
    """What others put into a bucket may lack files that an earlier checkpoint has."""

    def __init__(
        self,
        objects: ObjectStoreClient,
        *,
        prefix: str = "",
        outage_timeout: float = _OUTAGE_TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
        watch: ProgressFactory = log_progress,
    ) -> None:
        self._objects = objects
        self._prefix = f"{prefix}/" if prefix else ""
        self._outage_timeout = outage_timeout
        self._sleep = sleep
        self._watch = watch
        self._large = threading.Semaphore(MAX_PARALLEL_LARGE_FILES)

    def in_place(self, checkpoint_id: str) -> Path | None:
        """None: files have to be copied."""
        return None

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        """Sends files, several at once, and sums them up on the way.

        Raises:
            FailedPreconditionError: The store refuses the files, or one changed while it was sent.
            InvalidArgumentError: The store would refuse or change a name; nothing was sent.
            QuotaError: The store is full.
            UnavailableError: The store was away for longer than the outage timeout.
        """
        wanted = list(paths)
        sizes = {path: (source / path).stat().st_size for path in wanted if not path.endswith("/")}
        keys = {path: self._new_key(checkpoint_id, path) for path in sizes}
        what = f"checkpoint {checkpoint_id} is uploaded to {self._objects.place}"
        progress = self._watch(what, sum(sizes.values()))

        def send(path: str) -> FileEntry:
            with (
                self._memory_slot(sizes[path]),
                (source / path).open("rb") as content,
                count_attempt(progress) as count,
            ):
                body = HashingFile(content, sizes[path], count=count)
                self._objects.put(keys[path], cast("BinaryIO", body), size=sizes[path])
                return FileEntry(path, sizes[path], body.digest())

        sent = _in_parallel(partial(self._with_retries, send), sizes)
        entries = {entry.path: entry for entry in sent}
        return [entries.get(path) or FileEntry(path, 0, "") for path in wanted]

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """Bytes by relative path; a bucket knows of no directories."""
        begin = self._key(checkpoint_id, "")
        return {key.removeprefix(begin): size for key, size in self._objects.sizes(begin)}

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Receives files, several at once, and compares every byte with what was committed.

        Raises:
            CheckpointNotFound: A file is not there.
            DataLossError: Files are not what was committed; it names each.
            QuotaError: The disk of ``target`` is full.
            UnavailableError: The store was away for longer than the outage timeout.
        """
        wanted = list(paths)
        make_directories(target, wanted)
        files = [path for path in wanted if not path.endswith("/")]
        sizes = {entry.path: entry.size for entry in expected}
        what = f"checkpoint {checkpoint_id} is downloaded from {self._objects.place}"
        progress = self._watch(what, sum(sizes.get(path, 0) for path in files))
        algorithms = algorithms_of(expected)
        remedy = "free some space and repeat"
        with (
            full_disk_errors(f"copy checkpoint {checkpoint_id} to {target}", remedy=remedy),
            ThreadPoolExecutor(MAX_PARALLEL_RANGES, thread_name_prefix="resolute-range") as ranges,
        ):

            def receive(path: str) -> FileEntry:
                pieces = self._pieces(self._key(checkpoint_id, path), sizes.get(path, 0), ranges)
                return _received(
                    path, pieces, target, algorithm=algorithms.get(path, PREFERRED), progress=progress
                )

            try:
                found = _in_parallel(partial(self._with_retries, receive), files)
            except NotFoundError as failure:
                raise CheckpointNotFound(
                    f"a file of checkpoint {checkpoint_id} is gone: {failure}; "
                    "restore from another checkpoint"
                ) from failure
        compare(expected, found, name=f"checkpoint {checkpoint_id} in {self._objects.place}")

    def delete(self, checkpoint_id: str) -> None:
        """Removes every object of the checkpoint."""
        begin = self._key(checkpoint_id, "")
        self._with_retries(lambda key: self._objects.delete(k for k, _ in self._objects.sizes(key)), begin)

    def record(self, checkpoint_id: str) -> bytes | None:
        """What was kept of a checkpoint; None if nothing was."""
        try:
            return self._with_retries(
                lambda key: b"".join(self._objects.read(key)), self._record(checkpoint_id)
            )
        except NotFoundError:
            return None

    def write_record(self, checkpoint_id: str, content: bytes) -> None:
        """Keeps something of a checkpoint, in one step."""

        def put(key: str) -> None:
            self._objects.put(key, io.BytesIO(content), size=len(content))

        self._with_retries(put, self._record(checkpoint_id))

    def delete_record(self, checkpoint_id: str) -> None:
        """Forgets a checkpoint."""
        self._with_retries(lambda key: self._objects.delete([key]), self._record(checkpoint_id))

    def _pieces(
        self, key: str, size: int, ranges: ThreadPoolExecutor
    ) -> Generator[bytes | memoryview, None, None]:
        """Gives an object in order."""
        if not is_large(size):
            yield from self._objects.read(key)
            return

        def fetch(start: int, count: int) -> bytes:
            return b"".join(self._objects.read(key, start=start, size=count))

        with self._memory_slot(size):
            yield from in_ranges(size, fetch, submit=ranges.submit)

    def _memory_slot(self, size: int) -> contextlib.AbstractContextManager[object]:
        """Waits until there is room in memory for the parts of a file."""
        return self._large if is_large(size) else contextlib.nullcontext()

    def _with_retries(self, work: Callable[[_T], _R], subject: _T) -> _R:
        """Repeats work for as long as the store is away or busy."""
        return retry_transfer(partial(work, subject), outage_timeout=self._outage_timeout, sleep=self._sleep)

    def _key(self, checkpoint_id: str, path: str) -> str:
        check_identifier(checkpoint_id)
        return f"{self._prefix}{checkpoint_id}/{path}"

    def _new_key(self, checkpoint_id: str, path: str) -> str:
        """As ``_key``, of an object that may be made."""
        key = self._key(checkpoint_id, path)
        problem = self._objects.problem(key)
        if problem:
            shown = path if len(path) <= 100 else f"{path[:100]}…"
            raise InvalidArgumentError(f"{shown!r} {problem}")
        return key

    def _record(self, checkpoint_id: str) -> str:
        check_identifier(checkpoint_id)
        return f"{self._prefix}{RECORDS}/{checkpoint_id}.json"


def _received(
    path: str,
    pieces: Generator[bytes | memoryview, None, None],
    target: Path,
    *,
    algorithm: str,
    progress: Progress,
) -> FileEntry:
    summed, size = new_hash(algorithm), 0
    with (
        contextlib.closing(pieces),
        count_attempt(progress) as count,
        (target / path).open("wb") as output,
    ):
        for piece in pieces:
            summed.update(piece)
            output.write(piece)
            size += len(piece)
            count(len(piece))
    return FileEntry(path, size, written(summed, algorithm))


def _in_parallel(work: Callable[[str], FileEntry], paths: Iterable[str]) -> list[FileEntry]:
    """Works on files by several threads; the first failure drops what has not begun."""
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolute-checkpoint")
    try:
        futures = [pool.submit(work, path) for path in paths]
        wait(futures, return_when=FIRST_EXCEPTION)
        failed = next((future for future in futures if future.done() and future.exception()), None)
        return [failed.result()] if failed else [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)
