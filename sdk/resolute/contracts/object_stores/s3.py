"""Buckets of S3 and compatible stores, by the minio library."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import BinaryIO, final
from xml.etree import ElementTree as ET

import certifi
import urllib3
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from resolute.contracts.object_stores.access import (
    CONNECT_SECONDS,
    READ_SECONDS,
    StoreAccess,
    parse_address,
)
from resolute.contracts.object_stores.bucket import BLOCK_BYTES, SignedUpload
from resolute.contracts.object_stores.errors import NO_BUCKET, Answers, shortened, transport_errors
from resolute.contracts.object_stores.multipart import MULTIPART_BYTES, part_size_of
from resolute.contracts.object_stores.names import s3_problem
from resolute.contracts.object_stores.s3_credentials import credentials_of
from resolute.errors import (
    NotFoundError,
    ResoluteError,
    UnavailableError,
)

AMAZON = "https://s3.amazonaws.com"
_CONNECTIONS = 32
_RETRIES = urllib3.Retry(
    total=3, backoff_factor=0.2, status_forcelist=(500, 502, 503, 504), allowed_methods=None
)
_PART_BYTES = 16 << 20
_MOST_PARTS = 9000
_PARTS_AT_ONCE = 4
_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_BEYOND = "InvalidRange"


def open_store(access: StoreAccess) -> S3Store:
    """Opens a store; nothing is asked of it yet.

    Raises:
        InvalidArgumentError: The address of the store is not one.
    """
    return S3Store(access)


@final
class S3Store:
    """Connections to one store.

    Args:
        access: Address and credentials of the store.
    """

    def __init__(self, access: StoreAccess) -> None:
        self.access = access
        self.address = access.endpoint_url or AMAZON
        """Where it is."""
        url = parse_address(self.address, field="endpoint_url")
        self.http = access.guard(
            urllib3.PoolManager(
                maxsize=_CONNECTIONS,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
                retries=_RETRIES,
                cert_reqs="CERT_REQUIRED",
                ca_certs=os.environ.get("SSL_CERT_FILE") or certifi.where(),
            )
        )
        """The connections."""
        self.minio = Minio(
            url.netloc,
            secure=url.scheme == "https",
            region=access.region or None,
            credentials=credentials_of(access),
            http_client=self.http,
        )
        """The library's client on the same connections."""

    def bucket(self, name: str) -> S3Bucket:
        """Returns a bucket of the store."""
        return S3Bucket(self, name)


@final
class S3Bucket:
    """One bucket. The library has no public calls for multipart uploads, so this class sends those requests.

    Args:
        store: The connections to the store.
        name: Name of the bucket.
    """

    problem = staticmethod(s3_problem)
    """What is wrong with a name; empty when nothing is."""

    def __init__(self, store: S3Store, name: str) -> None:
        self.place = f"bucket {name!r} of {store.address}"
        self._http = store.http
        self._minio = store.minio
        self._name = name
        self._answers = Answers(self.place, store.access)
        self._expires = timedelta(seconds=store.access.url_seconds)

    def exists(self) -> bool:
        """Whether the bucket exists."""
        with self._errors():
            return self._minio.bucket_exists(self._name)

    def make(self) -> None:
        """Makes the bucket."""
        with self._errors():
            self._minio.make_bucket(self._name)

    def missing(self) -> ResoluteError:
        """Makes the error that says that the bucket does not exist."""
        return self._answers.from_code(NO_BUCKET, "")

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Writes an object; a large one goes in parts, several at once."""
        part_size = max(_PART_BYTES, -(-size // _MOST_PARTS))
        with self._errors(key):
            self._minio.put_object(
                *(self._name, key, content, size),
                part_size=part_size,
                num_parallel_uploads=_PARTS_AT_ONCE,
            )

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Generator[bytes, None, None]:
        """Yields the bytes of an object."""
        with self._errors(key):
            try:
                response = self._minio.get_object(self._name, key, offset=start, length=size)
            except (S3Error, InvalidResponseError) as error:
                if _is_beyond(error):
                    return
                raise
            complete = False
            try:
                # Some stores send the range that was asked for, and still say 200; others send everything.
                if response.status == 200 and "Content-Range" not in response.headers:
                    _skip(response, start)
                yield from response.stream(BLOCK_BYTES)
                complete = True
            finally:
                # The next user of the connection must not find the rest of this answer.
                if not complete:
                    response.close()
                response.release_conn()

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields names and bytes."""
        with self._errors():
            for item in self._minio.list_objects(self._name, prefix=prefix, recursive=True):
                yield item.object_name or "", item.size or 0

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects, many by one request."""
        with self._errors():
            failed = list(self._minio.remove_objects(self._name, (DeleteObject(key) for key in keys)))
        if failed:
            raise UnavailableError(
                f"{self.place} did not remove {len(failed)} objects, the first for {failed[0].code}: "
                f"{failed[0].message}; try again"
            )

    def read_url(self, key: str) -> str:
        """Signs a URL that gives an object."""
        with self._errors(key):
            return self._signed("GET", key)

    def sign_upload(self, key: str, *, size: int) -> SignedUpload:
        """Signs a URL for a small object, and one for each part of a large one."""
        with self._errors(key):
            if size < MULTIPART_BYTES:
                return SignedUpload((self._signed("PUT", key),))
            part_size = part_size_of(size, key=key)
            upload_id = self._create_multipart(key)
            urls = tuple(
                self._signed("PUT", key, {"partNumber": str(number), "uploadId": upload_id})
                for number in range(1, -(-size // part_size) + 1)
            )
            return SignedUpload(urls, part_size=part_size, upload_id=upload_id)

    def finish_upload(self, key: str, *, upload_id: str, tags: Sequence[str]) -> None:
        """Puts parts together."""
        root = ET.Element("CompleteMultipartUpload")
        for number, tag in enumerate(tags, start=1):
            part = ET.SubElement(root, "Part")
            ET.SubElement(part, "PartNumber").text = str(number)
            ET.SubElement(part, "ETag").text = tag
        with self._errors(key):
            try:
                answer = self._send("POST", key, {"uploadId": upload_id}, ET.tostring(root))
            except NotFoundError:
                # Put together by an earlier attempt whose answer was lost; if not, the object has no size.
                return
        # A store that takes long says 200 before it knows.
        if b"<Error>" in answer:
            raise self._answers.from_text(answer.decode(errors="replace"))

    def abort_upload(self, key: str, *, upload_id: str) -> None:
        """Removes parts."""
        with suppress(NotFoundError), self._errors(key):
            self._send("DELETE", key, {"uploadId": upload_id})

    def _create_multipart(self, key: str) -> str:
        answer = self._send("POST", key, {"uploads": ""})
        upload_id = next((e.text for e in ET.fromstring(answer).iter() if _local_name(e) == "UploadId"), None)  # noqa: S314 - from the store that holds the objects
        if not upload_id:
            raise self._answers.from_text(answer.decode(errors="replace"))
        return upload_id

    def _signed(self, method: str, key: str, query: Mapping[str, str] | None = None) -> str:
        return self._minio.get_presigned_url(
            method, self._name, key, expires=self._expires, extra_query_params=dict(query or {})
        )

    def _send(self, method: str, key: str, query: Mapping[str, str], body: bytes = b"") -> bytes:
        """Makes a request that the library has no public method for, by a URL that it signs."""
        response = self._http.request(method, self._signed(method, key, query), body=body)
        if response.status not in {200, 204}:
            text = response.data.decode(errors="replace")
            raise self._answers.from_text(f"Response code: {response.status} {text}", key=key)
        return response.data

    @contextmanager
    def _errors(self, key: str = "") -> Iterator[None]:
        """Turns what the store answers, or that it does not, into the platform's errors.

        Args:
            key: The object that was asked for, if it was one.
        """
        with transport_errors(self.place):
            try:
                yield
            except ResoluteError:
                raise
            except S3Error as error:
                status = int(getattr(error.response, "status", 0) or 0)
                raise self._answers.from_code(
                    error.code or "", error.message or "", status=status, key=key
                ) from error
            except InvalidResponseError as error:
                # A store, or a proxy before it, that does not say that its answer is XML.
                raise self._answers.from_text(error, key=key) from error
            except ServerError as error:
                raise UnavailableError(f"{self.place} answered {error.status_code}; try again") from error
            except MinioException as error:
                raise UnavailableError(
                    f"{self.place} does not answer ({shortened(error)}); try again"
                ) from error
            except ValueError as error:
                # The chain of credentials found none, or the library finds fault with a name.
                raise self._answers.no_credentials(
                    f"{shortened(error)}; check the bucket's name", _CREDENTIALS
                ) from error


def _is_beyond(error: MinioException) -> bool:
    if isinstance(error, S3Error):
        return error.code == _BEYOND
    return f"<Code>{_BEYOND}</Code>" in str(error) or "Response code: 416" in str(error)


def _skip(response: urllib3.BaseHTTPResponse, count: int) -> None:
    """Passes over what a store without ranges sends first."""
    while count and (data := response.read(min(count, BLOCK_BYTES))):
        count -= len(data)


def _local_name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
