"""Checkpoints in an object store for which this process has credentials."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from resolute.contracts.object_stores.bucket import Bucket
from resolute.core.checkpoint.files.hashing_file import HashingFile
from resolute.core.checkpoint.files.manifest import FileEntry, compare
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.receiving import receive_files
from resolute.core.checkpoint.files.record import RECORDS
from resolute.core.checkpoint.stores.base import check_identifier
from resolute.errors import InvalidArgumentError, NotFoundError
from resolute.transfer.progress import count_attempt
from resolute.transfer.retries import retry_transfer
from resolute.transfer.sources import ResumingSource
from resolute.transfer.transport import Sink
from resolute.transfer.workers import Cancellation, map_in_threads

_LARGE_BYTES = 64 << 20
_LARGE_FILES_AT_ONCE = 2
"""Large files that are sent at the same time: parts of each wait in memory."""
_OUTAGE_TIMEOUT = 120.0
_T = TypeVar("_T")
_R = TypeVar("_R")


class BucketStore:
    """Stores each file as the object ``[prefix/]checkpoint_id/path``, which any tool can read.

    Args:
        objects: The objects of the bucket.
        prefix: Prefix of all names, without slashes at its ends.
        outage_timeout: Seconds to wait for a store that is unavailable or busy.
        sleep: Waits some seconds; None for a wait that ends when the transfer is cancelled.
        watch: Creates the progress of a transfer.
    """

    accepts_unrecorded = False
    """What others put into a bucket may lack files that an earlier checkpoint has."""

    def __init__(
        self,
        objects: Bucket,
        *,
        prefix: str = "",
        outage_timeout: float = _OUTAGE_TIMEOUT,
        sleep: Callable[[float], None] | None = None,
        watch: ProgressFactory = log_progress,
    ) -> None:
        self._objects = objects
        self._prefix = f"{prefix}/" if prefix else ""
        self._outage_timeout = outage_timeout
        self._sleep = sleep
        self._watch = watch
        self._large = threading.Semaphore(_LARGE_FILES_AT_ONCE)

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

        sent = map_in_threads(partial(self._with_retries, send), sizes, stop=Cancellation())
        entries = {entry.path: entry for entry in sent}
        return [entries.get(path) or FileEntry(path, 0, "") for path in wanted]

    def await_room(self, size: int) -> None:
        """Returns at once: a bucket does not tell its room."""

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
        stop = Cancellation()

        def fetch(path: str, take: Sink, start: int, size: int | None) -> None:
            for piece in self._objects.read(self._key(checkpoint_id, path), start=start, size=size or 0):
                take(piece)

        source = ResumingSource(fetch, outage_timeout=self._outage_timeout, sleep=self._sleep or stop.sleep)
        name = f"checkpoint {checkpoint_id}"
        received = receive_files(
            source, target, paths, expected=expected, name=name, watch=self._watch, stop=stop
        )
        compare(expected, received, name=f"{name} in {self._objects.place}")

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

    def _memory_slot(self, size: int) -> contextlib.AbstractContextManager[object]:
        """Waits until there is room in memory for the parts of a file."""
        return self._large if size >= _LARGE_BYTES else contextlib.nullcontext()

    def _with_retries(self, work: Callable[[_T], _R], subject: _T) -> _R:
        """Repeats work for as long as the store is away or busy."""
        return retry_transfer(
            partial(work, subject), outage_timeout=self._outage_timeout, sleep=self._sleep or time.sleep
        )

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
