"""Checkpoints as plain objects of a bucket, which trials put and get by presigned URLs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import BinaryIO, TypeVar, cast
from xml.etree import ElementTree as ET

from minio.deleteobjects import DeleteObject
from urllib3 import BaseHTTPResponse

from resolute.errors import DataLossError, InvalidArgumentError, NotFoundError, UnavailableError, Violation
from resolute_checkpoints.blobs.base import Fault, FinishedUpload, OpenUpload, Upload
from resolute_checkpoints.blobs.buckets import (
    AMAZON,
    BucketClient,
    BucketSettings,
    from_answer,
    from_code,
    typed_errors,
)
from resolute_checkpoints.checkpoint import BucketStorage, File

MULTIPART_BYTES = 32 * 1024 * 1024
"""Files from this size on go in parts."""
_PART_BYTES = 8 * 1024 * 1024
_MOST_PARTS = 2000
_URL_BYTES = 2 * 1024 * 1024
"""Most bytes of the URLs of one file: they go in one message."""
_SIGNATURE_BYTES = 600
_MAX_KEY_BYTES = 1024
_AT_ONCE = 8
_OUT_OF_RANGE = 416
_T = TypeVar("_T")


class BucketStore:
    """Keeps each file as the object ``[prefix/]checkpoint_id/path``; directories are in the manifest only.

    Args:
        client: Talks to the store.
        storage: Bucket and prefix.
        settings: How the service uses buckets.
    """

    def __init__(self, client: BucketClient, storage: BucketStorage, *, settings: BucketSettings) -> None:
        self._client = client
        self._minio = client.minio
        self._bucket = storage.bucket
        self._prefix = f"{storage.prefix}/" if storage.prefix else ""
        self._settings = settings
        self._expires = timedelta(seconds=settings.url_seconds)
        self._place = f"bucket {storage.bucket!r} of {storage.endpoint_url or AMAZON}"

    def upload_urls(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Upload]:
        """Presigns one URL for each small file and one for each part of a large one."""
        with self._errors():
            self._require_bucket()
            return [self._upload(checkpoint_id, file) for file in files if not file.is_directory]

    def finish_uploads(self, checkpoint_id: str, uploads: Sequence[FinishedUpload]) -> None:
        """Puts parts together. What was put together before is left to the look at the sizes."""
        _for_each(partial(self._finish, checkpoint_id), uploads)

    def drop_uploads(self, checkpoint_id: str, uploads: Sequence[OpenUpload]) -> None:
        """Removes parts. An upload that is not there was put together, or removed before."""
        _for_each(partial(self._drop, checkpoint_id), uploads)

    def download_urls(self, checkpoint_id: str, paths: Sequence[str]) -> Sequence[str]:
        """Presigns a URL for each file."""
        with self._errors():
            return [self._presign("GET", self._key(checkpoint_id, path)) for path in paths]

    def faults(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Fault]:
        """Compares the files with a listing of the bucket."""
        with self._errors():
            sizes = dict(self._list(checkpoint_id))
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
        with self._errors():
            response = self._client.http.request(
                "GET", self._presign("GET", key), headers=headers, preload_content=False
            )
            if response.status == _OUT_OF_RANGE:
                response.close()
                return io.BytesIO()
            if response.status not in {200, 206}:
                answer = response.read()[:2000].decode(errors="replace")
                response.close()
                try:
                    raise from_answer(self._place, f"Response code: {response.status} {answer}")
                except NotFoundError as error:
                    raise _damaged(checkpoint_id, path, "is not there") from error
            # Some stores send the range that was asked for, and still say 200.
            if offset and response.status == 200 and "Content-Range" not in response.headers:
                _skip(response, offset)
            return cast("BinaryIO", _ObjectStream(response, place=self._place))

    def remove(self, checkpoint_id: str, *, committed: bool, kept: Collection[str] = ()) -> None:
        """Removes every object below the checkpoint's name, but for those that are to be kept."""
        stay = {self._key(checkpoint_id, path) for path in kept}
        with self._errors():
            if not committed and not self._minio.bucket_exists(self._bucket):
                return
            self._remove(key for key, _ in self._list(checkpoint_id) if key not in stay)

    def remove_files(self, checkpoint_id: str, paths: Sequence[str]) -> None:
        """Removes some objects; directories have none."""
        with self._errors():
            self._remove(self._key(checkpoint_id, path) for path in paths if not path.endswith("/"))

    def _require_bucket(self) -> None:
        """Makes sure that the bucket is there, once: a trial would learn it from the first refused file."""
        if self._bucket in self._client.known_buckets:
            return
        if not self._minio.bucket_exists(self._bucket):
            if not self._settings.create:
                raise from_code(self._place, "NoSuchBucket", "")
            self._minio.make_bucket(self._bucket)
        self._client.known_buckets.add(self._bucket)

    def _remove(self, keys: Iterator[str]) -> None:
        failed = list(self._minio.remove_objects(self._bucket, (DeleteObject(key) for key in keys)))
        if failed:
            raise UnavailableError(
                f"{self._place} did not remove {len(failed)} objects, the first for {failed[0].code}: "
                f"{failed[0].message}; this is repeated"
            )

    def _upload(self, checkpoint_id: str, file: File) -> Upload:
        key = self._key(checkpoint_id, file.path)
        if file.size < MULTIPART_BYTES:
            return Upload(file.path, (self._presign("PUT", key),))
        most = min(_MOST_PARTS, _URL_BYTES // (_SIGNATURE_BYTES + 3 * len(key.encode())))
        part_size = max(_PART_BYTES, -(-file.size // most))
        upload_id = self._create_multipart(key)
        count = -(-file.size // part_size)
        urls = tuple(
            self._presign("PUT", key, {"partNumber": str(number), "uploadId": upload_id})
            for number in range(1, count + 1)
        )
        return Upload(file.path, urls, part_size=part_size, upload_id=upload_id)

    def _create_multipart(self, key: str) -> str:
        answer = self._send("POST", key, {"uploads": ""})
        upload_id = next((e.text for e in ET.fromstring(answer).iter() if _local_name(e) == "UploadId"), None)  # noqa: S314 - from the store that holds the checkpoints
        if not upload_id:
            raise from_answer(self._place, answer.decode(errors="replace"))
        return upload_id

    def _finish(self, checkpoint_id: str, upload: FinishedUpload) -> None:
        root = ET.Element("CompleteMultipartUpload")
        for number, etag in enumerate(upload.etags, start=1):
            part = ET.SubElement(root, "Part")
            ET.SubElement(part, "PartNumber").text = str(number)
            ET.SubElement(part, "ETag").text = etag
        key = self._key(checkpoint_id, upload.path)
        with self._errors():
            try:
                answer = self._send("POST", key, {"uploadId": upload.upload_id}, ET.tostring(root))
            except NotFoundError:
                # Put together by an earlier attempt whose answer was lost; if not, the object has no size.
                return
            # A store that takes long says 200 before it knows.
            if b"<Error>" in answer:
                raise from_answer(self._place, answer.decode(errors="replace"))

    def _drop(self, checkpoint_id: str, upload: OpenUpload) -> None:
        key = self._key(checkpoint_id, upload.path)
        with self._errors(), contextlib.suppress(NotFoundError):
            self._send("DELETE", key, {"uploadId": upload.upload_id})

    def _send(self, method: str, key: str, query: Mapping[str, str], body: bytes = b"") -> bytes:
        """Makes a request that the library has no public method for, by a URL that it signs."""
        response = self._client.http.request(method, self._presign(method, key, query), body=body)
        if response.status not in {200, 204}:
            text = response.data.decode(errors="replace")
            raise from_answer(self._place, f"Response code: {response.status} {text}")
        return response.data

    def _presign(self, method: str, key: str, query: Mapping[str, str] | None = None) -> str:
        return self._minio.get_presigned_url(
            method, self._bucket, key, expires=self._expires, extra_query_params=dict(query or {})
        )

    def _list(self, checkpoint_id: str) -> Iterator[tuple[str, int]]:
        prefix = f"{self._prefix}{checkpoint_id}/"
        for item in self._minio.list_objects(self._bucket, prefix=prefix, recursive=True):
            yield item.object_name or "", item.size or 0

    def _key(self, checkpoint_id: str, path: str) -> str:
        key = f"{self._prefix}{checkpoint_id}/{path}"
        if len(key.encode()) > _MAX_KEY_BYTES:
            shown = path if len(path) <= 100 else f"{path[:100]}…"
            message = (
                f"{shown!r} takes {len(key.encode())} bytes with what comes before it in the bucket; "
                f"names of objects have at most {_MAX_KEY_BYTES}: use shorter names"
            )
            raise InvalidArgumentError(message, violations=[Violation("files", message)])
        return key

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        with typed_errors(self._place):
            yield


class _ObjectStream(io.BufferedIOBase):
    """The body of an answer, with failures in the platform's errors."""

    def __init__(self, response: BaseHTTPResponse, *, place: str) -> None:
        super().__init__()
        self._response = response
        self._place = place

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        with typed_errors(self._place):
            return self._response.read(None if size is None or size < 0 else size)

    def close(self) -> None:
        if not self.closed:
            self._response.close()
        super().close()


def _for_each(work: Callable[[_T], None], items: Sequence[_T]) -> None:
    """Makes several requests at once."""
    if not items:
        return
    with ThreadPoolExecutor(min(_AT_ONCE, len(items)), thread_name_prefix="checkpoints-parts") as pool:
        # The list makes failures come out.
        list(pool.map(work, items))


def _skip(response: BaseHTTPResponse, count: int) -> None:
    """Passes over what a store without ranges sends first."""
    while count and (data := response.read(min(count, 1 << 20))):
        count -= len(data)


def _compare(file: File, size: int | None) -> Fault | None:
    if size is None:
        return Fault(file.path, "is not there")
    return None if size == file.size else Fault(file.path, f"has {size} bytes, not {file.size}")


def _local_name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _damaged(checkpoint_id: str, path: str, problem: str) -> DataLossError:
    return DataLossError(
        f"{path!r} of checkpoint {checkpoint_id} {problem}; restore it from a copy or use another checkpoint",
        resource=f"checkpoint {checkpoint_id}",
    )
