"""Tests a store in the way in which trials and the service use it, and reports its faults."""

from __future__ import annotations

import email.utils
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from resolute.contracts.clock import Clock
from resolute.contracts.object_stores.multipart import MULTIPART_BYTES
from resolute.errors import FailedPreconditionError, ResoluteError, UnavailableError
from resolute_checkpoints.blobs.base import BlobStore, FinishedUpload, OpenUpload, Upload
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.os_errors import file_system_errors
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import BucketStorage, File, Storage

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_SMALL, _LARGE, _GIVEN_UP = "probe", "probe-in-parts", "probe-given-up"
_CONTENT = b"resolute storage doctor\n"
_MEASURED_BYTES = 32 << 20
_MAX_CLOCK_SKEW = 300.0
"""Seconds that clocks may differ; stores refuse signatures from about fifteen minutes on."""
_CONNECT_SECONDS, _READ_SECONDS = 5.0, 60.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one step."""

    step: str
    passed: bool
    detail: str


class Examiner:
    """Tests stores in threads.

    Args:
        stores: Opens stores.
        workers: The threads.
        clock: Clock that is compared with a store's clock.
    """

    def __init__(self, *, stores: StoreFactory, workers: BlobWorkers, clock: Clock) -> None:
        self._stores = stores
        self._workers = workers
        self._clock = clock

    async def examine(self, storage: Storage) -> list[Finding]:
        """Examines a store; raises what ``examine`` raises."""
        return await self._workers.run(
            lambda: examine(storage, stores=self._stores, clock=self._clock), of=storage
        )


def examine(storage: Storage, *, stores: StoreFactory, clock: Clock) -> list[Finding]:
    """Writes, reads and removes a checkpoint of its own. Blocks for as long as the store takes.

    Args:
        storage: The store.
        stores: Opens it.
        clock: Compared with the store's.

    Raises:
        InvalidArgumentError: The storage is described wrongly.
        PermissionDeniedError: The service may not use it.
    """
    store = stores.open(storage, listed=True)
    probe = (
        _BucketProbe(store, clock)
        if isinstance(storage, BucketStorage)
        else _DirectoryProbe(store, storage.path)
    )
    findings: list[Finding] = []
    for step, work in probe.steps():
        findings.append(_create_probe(step, work))
        if not findings[-1].passed:
            break
    if len(findings) > 1:
        findings.append(_create_probe("delete", probe.delete))
    return findings


def _create_probe(step: str, work: Callable[[], str]) -> Finding:
    try:
        return Finding(step, passed=True, detail=work())
    except ResoluteError as error:
        return Finding(step, passed=False, detail=str(error))


class _BucketProbe:
    """The test of a bucket, by a checkpoint that is not registered."""

    def __init__(self, store: BlobStore, clock: Clock) -> None:
        import urllib3  # here: a service starts without it

        self._store = store
        self._clock = clock
        self._id = str(uuid.uuid4())
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS)
        self._http = urllib3.PoolManager(timeout=timeout, retries=False)
        self._date = ""

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "list", self._list
        yield "write", self._write
        yield "clock", self._compare_clocks
        yield "read", self._read
        yield "speed", self._measure
        yield "given up", self._give_up

    def delete(self) -> str:
        self._store.remove(self._id, committed=True)
        left = self._store.faults(self._id, [File(_SMALL, len(_CONTENT))])
        _require(bool(left), "the object is still there after it was removed; check the bucket's versioning")
        return "objects can be removed"

    def _list(self) -> str:
        self._store.faults(self._id, [])
        return "the bucket is there and can be listed"

    def _write(self) -> str:
        (upload,) = self._store.upload_urls(self._id, [File(_SMALL, len(_CONTENT))])
        answer = self._put(upload, upload.urls[0], _CONTENT)
        self._date = answer.headers.get("Date", "")
        faults = self._store.faults(self._id, [File(_SMALL, len(_CONTENT))])
        _require(not faults, f"what was written is not listed: {', '.join(map(str, faults))}")
        return "a signed URL takes a file"

    def _compare_clocks(self) -> str:
        if not self._date:
            return "the store does not tell its time"
        skew = email.utils.parsedate_to_datetime(self._date).timestamp() - self._clock.time()
        _require(
            abs(skew) <= _MAX_CLOCK_SKEW,
            f"the store's clock is {skew:+.0f} s off; set the clocks, or signatures will be refused",
        )
        return f"the store's clock is {skew:+.0f} s off"

    def _read(self) -> str:
        (url,) = self._store.download_urls(self._id, [_SMALL])
        _require(
            self._request("GET", url).data == _CONTENT, "a signed URL gave other bytes than were written"
        )
        with self._store.open(self._id, _SMALL, offset=1) as stream:
            _require(stream.read() == _CONTENT[1:], "the store gives other ranges than were asked for")
        return "a signed URL gives the file, ranges too"

    def _measure(self) -> str:
        data = os.urandom(1 << 20) * (MULTIPART_BYTES >> 20)
        (upload,) = self._store.upload_urls(self._id, [File(_LARGE, len(data))])
        size, tags = upload.part_size or len(data), []
        began = time.perf_counter()
        for number, url in enumerate(upload.urls):
            answer = self._put(upload, url, data[number * size : (number + 1) * size])
            tags.append(answer.headers.get("ETag", ""))
        if upload.upload_id:
            self._store.finish_uploads(self._id, [FinishedUpload(_LARGE, upload.upload_id, tuple(tags))])
        up = time.perf_counter() - began
        began = time.perf_counter()
        (url,) = self._store.download_urls(self._id, [_LARGE])
        _require(self._request("GET", url).data == data, "a large file came back with other bytes")
        down = time.perf_counter() - began
        megabytes = len(data) / 1e6
        how = "in parts" if upload.upload_id else "whole"
        return f"{megabytes / up:.0f} MB/s up, {how}, and {megabytes / down:.0f} MB/s down"

    def _give_up(self) -> str:
        (upload,) = self._store.upload_urls(self._id, [File(_GIVEN_UP, MULTIPART_BYTES)])
        if not upload.upload_id:
            return "files go whole, so that there are no parts to remove"
        answer = self._put(upload, upload.urls[0], _CONTENT)
        self._store.drop_uploads(self._id, [OpenUpload(_GIVEN_UP, upload.upload_id)])
        tags = (answer.headers.get("ETag", ""),)
        self._store.finish_uploads(self._id, [FinishedUpload(_GIVEN_UP, upload.upload_id, tags)])
        gone = self._store.faults(self._id, [File(_GIVEN_UP, len(_CONTENT))])
        _require(
            bool(gone),
            "parts of an upload that was given up are still there and stay there, so give the "
            "bucket a rule that does (AbortIncompleteMultipartUpload)",
        )
        return "parts of an upload that was given up are removed"

    def _put(self, upload: Upload, url: str, body: bytes) -> BaseHTTPResponse:
        return self._request("PUT", url, body=body, headers=upload.headers)

    def _request(
        self, method: str, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> BaseHTTPResponse:
        from urllib3.exceptions import HTTPError

        try:
            answer = self._http.request(method, url, body=body, headers=headers)
        except HTTPError as error:
            raise UnavailableError(f"the store does not answer ({error}); try again") from error
        good = answer.status in {200, 201}
        text = "" if good else answer.data[:300].decode(errors="replace")
        _require(
            good,
            f"the store answers {answer.status} to a signed {method}: {text}; see what its credentials allow",
        )
        return answer


class _DirectoryProbe:
    """The test of a directory, by a checkpoint that is not registered."""

    def __init__(self, store: BlobStore, path: str) -> None:
        self._store = store
        self._root = Path(path)
        self._id = str(uuid.uuid4())

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "list", self._list
        yield "write", self._write
        yield "read", self._read
        yield "speed", self._measure

    def delete(self) -> str:
        self._store.remove(self._id, committed=True)
        left = (self._root / self._id).exists()
        _require(not left, "the files are still there after they were removed; see what keeps them")
        return "files can be removed"

    def _list(self) -> str:
        self._store.faults(self._id, [])
        with file_system_errors(self._root):
            free = shutil.disk_usage(self._root).free
        return f"the directory is there, with {free / 1e9:.1f} GB free"

    def _write(self) -> str:
        with file_system_errors(self._root):
            (self._root / self._id).mkdir()
        self._put(_SMALL, _CONTENT)
        faults = self._store.faults(self._id, [File(_SMALL, len(_CONTENT))])
        _require(not faults, f"what was written is not found: {', '.join(map(str, faults))}")
        return "the service's user can write"

    def _read(self) -> str:
        with self._store.open(self._id, _SMALL, offset=0) as stream:
            _require(stream.read() == _CONTENT, "other bytes came back than were written")
        return "files can be read"

    def _measure(self) -> str:
        data = os.urandom(1 << 20) * (_MEASURED_BYTES >> 20)
        began = time.perf_counter()
        self._put(_LARGE, data)
        up = time.perf_counter() - began
        with self._store.open(self._id, _LARGE, offset=0) as stream, file_system_errors(self._root):
            # Of what was just written the memory would be measured.
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            began = time.perf_counter()
            _require(stream.read() == data, "a large file came back with other bytes")
        down = time.perf_counter() - began
        megabytes = len(data) / 1e6
        return f"{megabytes / up:.0f} MB/s written through to the disk, {megabytes / down:.0f} MB/s read"

    def _put(self, name: str, data: bytes) -> None:
        with file_system_errors(self._root), (self._root / self._id / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise FailedPreconditionError(problem)
