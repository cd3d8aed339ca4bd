"""Checkpoints as plain objects of a bucket, which trials upload and download by presigned URLs."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Generator, Sequence
from functools import partial
from typing import Any, BinaryIO, cast

from resolute.contracts.object_stores.bucket import Bucket, map_concurrently
from resolute.errors import (
    NotFoundError,
)
from resolute_checkpoints.blobs.base import Fault, FinishedUpload, OpenUpload, Upload, damaged, taken
from resolute_checkpoints.domain.checkpoint import File
from resolute_serving.validation import invalid

KnownBuckets = set[str]
"""Names of buckets that were seen in a store."""


class BucketStore:
    """Stores each file as the object ``[prefix/]checkpoint_id/path``. Directories are only in the manifest.

    Args:
        bucket: The bucket.
        name: Its name.
        prefix: Prefix of all names, without slashes at its ends.
        known: Buckets of the store that are known to exist; this one is added.
        create: Whether the bucket is created if it does not exist.
    """

    def __init__(self, bucket: Bucket, *, name: str, prefix: str, known: KnownBuckets, create: bool) -> None:
        self._bucket = bucket
        self._name = name
        self._prefix = f"{prefix}/" if prefix else ""
        self._known = known
        self._create = create

    def require_free(self, checkpoint_id: str) -> None:
        """Checks that no object has the checkpoint's name. A bucket has no limit of space to check."""
        self._require_bucket()
        directory = self._directory(checkpoint_id)
        if any(True for _ in self._bucket.sizes(directory)):
            raise taken(checkpoint_id, f"{directory} in bucket {self._name}")

    def upload_urls(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Upload]:
        """Presigns a URL for each file, or for each part of a large one where the store takes parts."""
        self._require_bucket()
        return [self._upload(checkpoint_id, file) for file in files if not file.is_directory]

    def finish_uploads(self, checkpoint_id: str, uploads: Sequence[FinishedUpload]) -> None:
        """Completes multipart uploads; compares the sizes of those that were completed before."""
        map_concurrently(partial(self._finish, checkpoint_id), uploads)

    def drop_uploads(self, checkpoint_id: str, uploads: Sequence[OpenUpload]) -> None:
        """Aborts multipart uploads. One that does not exist was completed or aborted before."""
        map_concurrently(partial(self._drop, checkpoint_id), uploads)

    def download_urls(self, checkpoint_id: str, paths: Sequence[str]) -> Sequence[str]:
        """Presigns a URL for each file."""
        return [self._bucket.read_url(self._key(checkpoint_id, path)) for path in paths]

    def faults(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Fault]:
        """Compares the files with a listing of the bucket."""
        sizes = dict(self._bucket.sizes(self._directory(checkpoint_id)))
        compared = (
            _compare(file, sizes.get(self._key(checkpoint_id, file.path)))
            for file in files
            if not file.is_directory
        )
        return [fault for fault in compared if fault is not None]

    def damaged(
        self, checkpoint_id: str, files: Sequence[File], *, wanted: Callable[[], bool]
    ) -> Sequence[Fault]:
        """Returns none: writers hash what they upload, and object stores check what they store."""
        return ()

    def open(self, checkpoint_id: str, path: str, *, offset: int) -> BinaryIO:
        """Opens one object at an offset."""
        pieces = self._bucket.read(self._key(checkpoint_id, path), start=offset)
        try:
            first = next(pieces, b"")
        except NotFoundError as error:
            raise damaged(checkpoint_id, path, "is not there") from error
        return cast("BinaryIO", io.BufferedReader(_ObjectStream(first, pieces)))

    def remove(self, checkpoint_id: str, *, committed: bool, kept: Collection[str] = ()) -> None:
        """Removes every object below the checkpoint's name, except those to keep."""
        stay = {self._key(checkpoint_id, path) for path in kept}
        if not committed and not self._bucket.exists():
            return
        keys = self._bucket.sizes(self._directory(checkpoint_id))
        self._bucket.delete(key for key, _ in keys if key not in stay)

    def write_other(self, directory: str, name: str, content: bytes) -> None:
        """Writes an object."""
        self._require_bucket()
        self._bucket.put(self._key(directory, name), io.BytesIO(content), size=len(content))

    def remove_others(self, directory: str) -> None:
        """Removes every object below a name."""
        if self._bucket.exists():
            self._bucket.delete(key for key, _ in self._bucket.sizes(self._directory(directory)))

    def remove_files(self, checkpoint_id: str, paths: Sequence[str]) -> None:
        """Removes some objects; directories have none."""
        self._bucket.delete(self._key(checkpoint_id, path) for path in paths if not path.endswith("/"))

    def _require_bucket(self) -> None:
        """Checks once that the bucket exists: otherwise a trial would fail at its first file."""
        if self._name in self._known:
            return
        if not self._bucket.exists():
            if not self._create:
                raise self._bucket.missing()
            self._bucket.make()
        self._known.add(self._name)

    def _upload(self, checkpoint_id: str, file: File) -> Upload:
        signed = self._bucket.sign_upload(self._key(checkpoint_id, file.path), size=file.size)
        return Upload(
            file.path,
            signed.urls,
            part_size=signed.part_size,
            upload_id=signed.upload_id,
            headers=signed.headers,
        )

    def _finish(self, checkpoint_id: str, upload: FinishedUpload) -> None:
        key = self._key(checkpoint_id, upload.path)
        self._bucket.finish_upload(key, upload_id=upload.upload_id, tags=upload.etags)

    def _drop(self, checkpoint_id: str, upload: OpenUpload) -> None:
        self._bucket.abort_upload(self._key(checkpoint_id, upload.path), upload_id=upload.upload_id)

    def _directory(self, checkpoint_id: str) -> str:
        return f"{self._prefix}{checkpoint_id}/"

    def _key(self, checkpoint_id: str, path: str) -> str:
        key = f"{self._directory(checkpoint_id)}{path}"
        problem = self._bucket.problem(key)
        if problem:
            shown = path if len(path) <= 100 else f"{path[:100]}…"
            message = f"{shown!r} {problem}"
            raise invalid("files", message)
        return key


class _ObjectStream(io.RawIOBase):
    """The bytes of an object as a file.

    Args:
        first: Its first bytes.
        rest: The following bytes.
    """

    def __init__(self, first: bytes, rest: Generator[bytes, None, None]) -> None:
        super().__init__()
        self._piece = memoryview(first)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if not self._piece:
            self._piece = memoryview(next(self._rest, b""))
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._rest.close()
        super().close()


def _compare(file: File, size: int | None) -> Fault | None:
    if size is None:
        return Fault(file.path, "is not there")
    return None if size == file.size else Fault(file.path, f"has {size} bytes, not {file.size}")
