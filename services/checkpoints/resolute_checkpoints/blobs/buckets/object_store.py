"""Checkpoints as plain objects of a bucket, which trials put and get by presigned URLs."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import BinaryIO, TypeVar, cast

from urllib3 import BaseHTTPResponse

from resolute.errors import DataLossError, InvalidArgumentError, NotFoundError, Violation
from resolute_checkpoints.blobs.base import Fault, FinishedUpload, OpenUpload, Upload
from resolute_checkpoints.blobs.buckets.base import Bucket, BucketSettings, Client
from resolute_checkpoints.blobs.buckets.errors import NO_BUCKET, from_answer, from_code, transport_errors
from resolute_checkpoints.domain.checkpoint import BucketStorage, File

_CONCURRENCY = 8
_OUT_OF_RANGE = 416
T = TypeVar("T")


class ObjectStore:
    """Keeps each file as the object ``[prefix/]checkpoint_id/path``; directories are in the manifest only.

    Args:
        client: Talks to the store.
        storage: Bucket and prefix.
        settings: How the service uses buckets.
    """

    def __init__(self, client: Client, storage: BucketStorage, *, settings: BucketSettings) -> None:
        self._client = client
        self._name = storage.bucket
        self._bucket: Bucket = client.bucket(storage.bucket)
        self._prefix = f"{storage.prefix}/" if storage.prefix else ""
        self._settings = settings

    def upload_urls(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Upload]:
        """Presigns a URL for each file, or for each part of a large one where the store takes parts."""
        with self._bucket.errors():
            self._require_bucket()
            return [
                self._bucket.upload(self._key(checkpoint_id, file.path), file)
                for file in files
                if not file.is_directory
            ]

    def finish_uploads(self, checkpoint_id: str, uploads: Sequence[FinishedUpload]) -> None:
        """Puts parts together. What was put together before is left to the look at the sizes."""
        map_concurrently(partial(self._finish, checkpoint_id), uploads)

    def drop_uploads(self, checkpoint_id: str, uploads: Sequence[OpenUpload]) -> None:
        """Removes parts. An upload that is not there was put together, or removed before."""
        map_concurrently(partial(self._drop, checkpoint_id), uploads)

    def download_urls(self, checkpoint_id: str, paths: Sequence[str]) -> Sequence[str]:
        """Presigns a URL for each file."""
        with self._bucket.errors():
            return [self._bucket.read_url(self._key(checkpoint_id, path)) for path in paths]

    def faults(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Fault]:
        """Compares the files with a listing of the bucket."""
        with self._bucket.errors():
            sizes = dict(self._bucket.list(self._directory(checkpoint_id)))
        found = (
            _compare(file, sizes.get(self._key(checkpoint_id, file.path)))
            for file in files
            if not file.is_directory
        )
        return [fault for fault in found if fault is not None]

    def open(self, checkpoint_id: str, path: str, *, offset: int) -> BinaryIO:
        """Opens one object at an offset."""
        key = self._key(checkpoint_id, path)
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        place = self._bucket.place
        with self._bucket.errors():
            response = self._client.http.request(
                "GET", self._bucket.read_url(key), headers=headers, preload_content=False
            )
            if response.status == _OUT_OF_RANGE:
                response.close()
                return io.BytesIO()
            if response.status not in {200, 206}:
                answer = response.read()[:2000].decode(errors="replace")
                response.close()
                try:
                    raise from_answer(place, f"Response code: {response.status} {answer}")
                except NotFoundError as error:
                    raise _damaged(checkpoint_id, path, "is not there") from error
            # Some stores send the range that was asked for, and still say 200.
            if offset and response.status == 200 and "Content-Range" not in response.headers:
                _skip(response, offset)
            return cast("BinaryIO", _ObjectStream(response, place=place))

    def remove(self, checkpoint_id: str, *, committed: bool, kept: Collection[str] = ()) -> None:
        """Removes every object below the checkpoint's name, but for those that are to be kept."""
        stay = {self._key(checkpoint_id, path) for path in kept}
        with self._bucket.errors():
            if not committed and not self._bucket.exists():
                return
            found = self._bucket.list(self._directory(checkpoint_id))
            self._bucket.remove(key for key, _ in found if key not in stay)

    def remove_files(self, checkpoint_id: str, paths: Sequence[str]) -> None:
        """Removes some objects; directories have none."""
        with self._bucket.errors():
            self._bucket.remove(self._key(checkpoint_id, path) for path in paths if not path.endswith("/"))

    def _require_bucket(self) -> None:
        """Makes sure that the bucket is there, once: a trial would learn it from the first refused file."""
        if self._name in self._client.known_buckets:
            return
        if not self._bucket.exists():
            if not self._settings.create:
                raise from_code(self._bucket.place, NO_BUCKET, "")
            self._bucket.make()
        self._client.known_buckets.add(self._name)

    def _finish(self, checkpoint_id: str, upload: FinishedUpload) -> None:
        with self._bucket.errors():
            self._bucket.finish(self._key(checkpoint_id, upload.path), upload)

    def _drop(self, checkpoint_id: str, upload: OpenUpload) -> None:
        with self._bucket.errors():
            self._bucket.drop(self._key(checkpoint_id, upload.path), upload.upload_id)

    def _directory(self, checkpoint_id: str) -> str:
        return f"{self._prefix}{checkpoint_id}/"

    def _key(self, checkpoint_id: str, path: str) -> str:
        key = f"{self._directory(checkpoint_id)}{path}"
        problem = self._bucket.problem(key)
        if problem:
            shown = path if len(path) <= 100 else f"{path[:100]}…"
            message = f"{shown!r} {problem}"
            raise InvalidArgumentError(message, violations=[Violation("files", message)])
        return key


def map_concurrently(work: Callable[[T], None], items: Iterable[T]) -> None:
    """Does some work on each of many things, a few of them at a time; the first failure comes out."""
    with ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="checkpoints-bucket") as pool:
        # The loop makes failures come out.
        for _ in pool.map(work, items):
            pass


class _ObjectStream(io.BufferedIOBase):
    """The body of an answer, with failures in the platform's errors."""

    def __init__(self, response: BaseHTTPResponse, *, place: str) -> None:
        super().__init__()
        self._response = response
        self._place = place

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        with transport_errors(self._place):
            return self._response.read(None if size is None or size < 0 else size)

    def close(self) -> None:
        if not self.closed:
            self._response.close()
        super().close()


def _skip(response: BaseHTTPResponse, count: int) -> None:
    """Passes over what a store without ranges sends first."""
    while count and (data := response.read(min(count, 1 << 20))):
        count -= len(data)


def _compare(file: File, size: int | None) -> Fault | None:
    if size is None:
        return Fault(file.path, "is not there")
    return None if size == file.size else Fault(file.path, f"has {size} bytes, not {file.size}")


def _damaged(checkpoint_id: str, path: str, problem: str) -> DataLossError:
    return DataLossError(
        f"{path!r} of checkpoint {checkpoint_id} {problem}; restore it from a copy or use another checkpoint",
        resource=f"checkpoint {checkpoint_id}",
    )
