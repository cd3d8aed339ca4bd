"""Checkpoints in a bucket, by presigned URLs: files are transferred in parallel and hashed on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, final

from resolute.contracts.calls.backoff import retry
from resolute.core.checkpoint.files.hashing_file import HashingFile
from resolute.core.checkpoint.files.manifest import FileEntry, compare
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.receiving import receive_files
from resolute.core.checkpoint.files.reuse import Reuse
from resolute.errors import QuotaError, UnavailableError
from resolute.transfer.progress import Progress, count_attempt
from resolute.transfer.retries import new_backoff, retry_transfer, retry_with_new_url
from resolute.transfer.sources import PresignedUrls, url_source
from resolute.transfer.transport import DEFAULT_TIMEOUT, ObjectMissingError, Transport, UrlRefusedError
from resolute.transfer.workers import Cancellation

_THREADS = 8
_PARTS_AT_ONCE = 4
_BATCH_FILES = 250
_BATCH_BYTES = 1 << 30
_PART_RETRIES = 4
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class UploadTarget:
    """The upload URL of one file."""

    path: str
    urls: tuple[str, ...]
    """Of its parts, in order."""
    part_size: int = 0
    """Bytes of each part but the last; zero for a file that goes whole."""
    upload_id: str = ""
    """Identifies an upload in parts."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What the store expects with each part."""


class UrlSigner(Protocol):
    """Returns presigned URLs."""

    def uploads(self, checkpoint_id: str, sizes: Mapping[str, int]) -> Mapping[str, UploadTarget]:
        """Returns targets by path."""

    def downloads(self, checkpoint_id: str, paths: Sequence[str]) -> Mapping[str, str]:
        """Returns URLs by path."""

    def sizes(self, checkpoint_id: str) -> dict[str, int]:
        """Returns bytes by path of a committed checkpoint."""

    def delete(self, checkpoint_id: str) -> None:
        """Removes a checkpoint."""


class PresignedStore:
    """A bucket that this process can access only by URLs that the checkpoints service signs.

    Args:
        signer: Returns URLs.
        outage_timeout: Seconds to wait for a store that is unavailable or busy.
        reuse: Finds files of earlier checkpoints; None to upload every file.
        sleep: Waits some seconds; None for a wait that ends when the transfer is cancelled.
        watch: Creates the progress of a transfer.
        timeout: Seconds without a byte in either direction after which a store counts as unavailable.
    """

    def __init__(
        self,
        signer: UrlSigner,
        *,
        outage_timeout: float,
        reuse: Reuse | None = None,
        sleep: Callable[[float], None] | None = None,
        watch: ProgressFactory = log_progress,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._signer = signer
        self._reuse = reuse
        self._outage_timeout = outage_timeout
        self._sleep = sleep
        self._watch = watch
        self._timeout = timeout

    def in_place(self, checkpoint_id: str) -> Path | None:
        """None: files have to be copied."""
        return None

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        """Sends files; they are safe in the store once this returns.

        Raises:
            UnavailableError: The store was away for longer than the outage timeout.
            FailedPreconditionError: The store refuses the files, or a file changed while it was sent.
            QuotaError: The store was full for longer than the outage timeout.
        """
        wanted = list(paths)
        held = self._reuse.find(checkpoint_id, source, wanted) if self._reuse else {}
        files = [path for path in wanted if not path.endswith("/") and path not in held]
        sizes = {path: (source / path).stat().st_size for path in files}
        with Transport(timeout=self._timeout) as transport, _Pool() as pool:
            sending = _FileUploader(
                checkpoint_id,
                source,
                signer=self._signer,
                transport=transport,
                pool=pool,
                progress=self._watch(f"checkpoint {checkpoint_id} is uploaded", sum(sizes.values())),
            )
            for batch in _batches(sizes):
                targets = self._signer.uploads(checkpoint_id, batch)
                for path, size in batch.items():
                    pool.add(self._with_retries, sending.file, targets[path], size)
            entries = {entry.path: entry for entry in pool.results()}
        if self._reuse is not None:
            self._reuse.sent(entries.values())
        entries |= {path: file.entry for path, file in held.items()}
        return [entries.get(path) or FileEntry(path, 0, "") for path in wanted]

    def await_room(self, size: int) -> None:
        """Returns at once: a bucket does not tell its room."""

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """Bytes by relative path."""
        return self._signer.sizes(checkpoint_id)

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Receives files and compares every byte with what was committed.

        Raises:
            CheckpointNotFound: A file is not there.
            DataLossError: Files are not what was committed; it names each.
            QuotaError: The disk of ``target`` is full.
            UnavailableError: The store was away for longer than the outage timeout.
        """
        name, wanted = f"checkpoint {checkpoint_id}", list(paths)
        files = [path for path in wanted if not path.endswith("/")]
        with Transport(timeout=self._timeout) as transport:
            stop = Cancellation()
            urls = PresignedUrls(name, files, lambda some: self._signer.downloads(checkpoint_id, some))
            source = url_source(
                urls, transport, outage_timeout=self._outage_timeout, sleep=self._sleep or stop.sleep
            )
            received = receive_files(
                source, target, wanted, expected=expected, name=name, watch=self._watch, stop=stop
            )
        compare(expected, received, name=f"{name} in its bucket")

    def delete(self, checkpoint_id: str) -> None:
        """Removes the checkpoint through the service."""
        self._signer.delete(checkpoint_id)

    def _with_retries(self, work: Callable[..., FileEntry], *arguments: object) -> FileEntry:
        return retry_transfer(
            partial(work, *arguments),
            outage_timeout=self._outage_timeout,
            sleep=self._sleep or time.sleep,
            retried=(UnavailableError, QuotaError),
        )


@final
class _Pool:
    """Threads for files. The first failure cancels the files that have not begun."""

    def __init__(self) -> None:
        self._files = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolute-checkpoint")
        self._parts = ThreadPoolExecutor(_PARTS_AT_ONCE, thread_name_prefix="resolute-part")
        # A part waits in memory from when it is read until it is sent.
        self._memory_slots = threading.Semaphore(_PARTS_AT_ONCE + 1)
        self._futures: list[Future[FileEntry]] = []

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *failure: object) -> None:
        # Files first: they wait for their parts.
        self._files.shutdown(cancel_futures=True)
        self._parts.shutdown(cancel_futures=True)

    def add(self, work: Callable[..., FileEntry], *arguments: object) -> None:
        self._futures.append(self._files.submit(work, *arguments))

    def results(self) -> list[FileEntry]:
        done, _ = wait(self._futures, return_when=FIRST_EXCEPTION)
        for future in done:
            if future.exception() is not None:
                self._files.shutdown(wait=False, cancel_futures=True)
                future.result()
        return [future.result() for future in self._futures]

    def part(self, work: Callable[[], _T]) -> Future[_T]:
        """Has one part sent or received, once there is room for it in memory."""
        self._memory_slots.acquire()
        future = self._parts.submit(work)
        future.add_done_callback(lambda _: self._memory_slots.release())
        return future


@dataclass(frozen=True, slots=True)
class _FileUploader:
    """Sends the files of one checkpoint."""

    checkpoint_id: str
    source: Path
    signer: UrlSigner
    transport: Transport
    pool: _Pool
    progress: Progress

    def file(self, target: UploadTarget, size: int) -> FileEntry:
        def send(current: UploadTarget) -> FileEntry:
            with count_attempt(self.progress) as count:
                work = self._in_parts if current.upload_id else self._whole
                return work(current, size, count)

        def renew() -> UploadTarget:
            return self.signer.uploads(self.checkpoint_id, {target.path: size})[target.path]

        # An upload in parts that the store no longer knows begins again.
        return retry_with_new_url(send, target, renew, refusals=(UrlRefusedError, ObjectMissingError))

    def _whole(self, target: UploadTarget, size: int, count: Callable[[int], None]) -> FileEntry:
        with (self.source / target.path).open("rb") as content:
            body = HashingFile(content, size, count=count)
            self.transport.put(target.urls[0], body, size=size, headers=target.headers)
            return FileEntry(target.path, size, body.digest())

    def _in_parts(self, target: UploadTarget, size: int, count: Callable[[int], None]) -> FileEntry:
        futures: list[Future[str]] = []
        with (self.source / target.path).open("rb") as content:
            body = HashingFile(content, size, count=count)
            try:
                for url in target.urls:
                    data = body.read(target.part_size)
                    futures.append(self.pool.part(_put_part(self.transport, url, data, target.headers)))
                    if any(future.done() and future.exception() for future in futures):
                        break
                etags = tuple(future.result() for future in futures)
            finally:
                wait(futures)
            return FileEntry(target.path, size, body.digest(), target.upload_id, etags)


def _put_part(transport: Transport, url: str, data: bytes, headers: Mapping[str, str]) -> Callable[[], str]:
    def put() -> str:
        # A short outage costs one part again, a long one the file.
        return retry(
            lambda: transport.put(url, data, size=len(data), headers=headers),
            backoff=new_backoff(),
            attempts=1 + _PART_RETRIES,
        )

    return put


def _batches(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Cuts files into parts for which URLs are asked together: a message holds only so many.

    A URL that runs out before its turn is renewed when the store refuses it.
    """
    batch: dict[str, int] = {}
    total = 0
    for path, size in sizes.items():
        if batch and (len(batch) == _BATCH_FILES or total + size > _BATCH_BYTES):
            yield batch
            batch, total = {}, 0
        batch[path] = size
        total += size
    if batch:
        yield batch
