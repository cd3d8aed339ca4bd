"""Buckets of S3, MinIO and whatever else speaks that protocol, by the ``minio`` library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from minio import Minio
from minio.credentials.providers import (
    AWSConfigProvider,
    ChainedProvider,
    EnvAWSProvider,
    EnvMinioProvider,
    Provider,
    StaticProvider,
)
from minio.deleteobjects import DeleteObject
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from resolute.contracts.object_stores.names import s3_problem
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResoluteError,
    UnavailableError,
    Violation,
)
from resolute_checkpoints.blobs.base import FinishedUpload, Upload
from resolute_checkpoints.blobs.buckets.base import BucketSettings, new_pool
from resolute_checkpoints.blobs.buckets.egress import require_reachable
from resolute_checkpoints.blobs.buckets.errors import from_answer, from_code, shortened, transport_errors
from resolute_checkpoints.blobs.buckets.multipart import MULTIPART_BYTES, part_size_of
from resolute_checkpoints.domain.checkpoint import File

AMAZON = "https://s3.amazonaws.com"


class S3Client:
    """The client of one store.

    Args:
        settings: How the service uses buckets.
        endpoint_url: Address of the store; empty for Amazon's.

    Raises:
        InvalidArgumentError: The address is not one.
        PermissionDeniedError: No store may be there.
    """

    def __init__(self, settings: BucketSettings, *, endpoint_url: str) -> None:
        url = urlsplit(endpoint_url or AMAZON)
        if url.scheme not in {"http", "https"} or not url.netloc or url.path.strip("/") or url.query:
            name = "storage.bucket.endpoint_url"
            message = f"{name} is {endpoint_url!r}; write it as https://host or http://host:port"
            raise InvalidArgumentError(message, violations=[Violation(name, message)])
        require_reachable(url.hostname or "")
        self.known_buckets: set[str] = set()
        self.http = new_pool()
        self.address = endpoint_url or AMAZON
        """Where it is."""
        self._expires = timedelta(seconds=settings.url_seconds)
        self.minio = Minio(
            url.netloc,
            secure=url.scheme == "https",
            region=settings.region or None,
            credentials=_provider(settings),
            http_client=self.http,
        )
        """The library's client on the same connections."""

    def bucket(self, name: str) -> S3Bucket:
        """Gives a bucket of the store."""
        return S3Bucket(self, name)

    def presign(self, method: str, bucket: str, key: str, query: Mapping[str, str] | None = None) -> str:
        """Signs any request."""
        return self.minio.get_presigned_url(
            method, bucket, key, expires=self._expires, extra_query_params=dict(query or {})
        )


def _provider(settings: BucketSettings) -> Provider:
    if settings.access_key:
        return StaticProvider(settings.access_key, settings.secret_key)
    return ChainedProvider([EnvAWSProvider(), EnvMinioProvider(), AWSConfigProvider()])


class S3Bucket:
    """One bucket. The library has no public calls for multipart uploads: those requests are made here.

    Args:
        client: Talks to the store.
        name: Name of the bucket.
    """

    def __init__(self, client: S3Client, name: str) -> None:
        self._client = client
        self._minio = client.minio
        self._name = name
        self.place = f"bucket {name!r} of {client.address}"
        """Which it is, for messages."""

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what the store answers, or that it does not, into errors that name the place and the remedy.

        Raises:
            FailedPreconditionError: The store refuses the service, or there is no such bucket.
            NotFoundError: There is no such object or upload.
            QuotaError: The store is full.
            UnavailableError: Anything else, which may pass.
        """
        with transport_errors(self.place):
            try:
                yield
            except ResoluteError:
                raise
            except S3Error as error:
                raise from_code(self.place, error.code or "", error.message or "") from error
            except InvalidResponseError as error:
                # A store, or a proxy before it, that does not say that its answer is XML.
                raise from_answer(self.place, *error.args[:1]) from error
            except ServerError as error:
                raise UnavailableError(f"{self.place} answered {error.status_code}; try again") from error
            except MinioException as error:
                raise UnavailableError(f"{self.place} cannot be used: {shortened(error)}") from error
            except ValueError as error:
                # The chain of credentials found none, or the library finds fault with a name.
                raise FailedPreconditionError(
                    f"{self.place} cannot be used by the checkpoints service: {shortened(error)}; check the "
                    "bucket's name, and set RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY and "
                    "RESOLUTE_CHECKPOINTS_S3_SECRET_KEY for it"
                ) from error

    def exists(self) -> bool:
        """Whether the bucket is there."""
        return self._minio.bucket_exists(self._name)

    def make(self) -> None:
        """Makes the bucket."""
        self._minio.make_bucket(self._name)

    def problem(self, key: str) -> str:
        """What is wrong with a key; empty when nothing is."""
        return s3_problem(key)

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Gives keys that begin with a prefix, and their bytes."""
        for item in self._minio.list_objects(self._name, prefix=prefix, recursive=True):
            yield item.object_name or "", item.size or 0

    def remove(self, keys: Iterable[str]) -> None:
        """Removes objects, many by one request."""
        failed = list(self._minio.remove_objects(self._name, (DeleteObject(key) for key in keys)))
        if failed:
            raise UnavailableError(
                f"{self.place} did not remove {len(failed)} objects, the first for {failed[0].code}: "
                f"{failed[0].message}; this is repeated"
            )

    def read_url(self, key: str) -> str:
        """Presigns a URL that gives an object."""
        return self._client.presign("GET", self._name, key)

    def upload(self, key: str, file: File) -> Upload:
        """Presigns a URL for a small file, and one for each part of a large one."""
        if file.size < MULTIPART_BYTES:
            return Upload(file.path, (self._client.presign("PUT", self._name, key),))
        part_size = part_size_of(file.size, key=key)
        upload_id = self._create_multipart(key)
        urls = tuple(
            self._client.presign("PUT", self._name, key, {"partNumber": str(number), "uploadId": upload_id})
            for number in range(1, -(-file.size // part_size) + 1)
        )
        return Upload(file.path, urls, part_size=part_size, upload_id=upload_id)

    def finish(self, key: str, upload: FinishedUpload) -> None:
        """Puts parts together."""
        root = ET.Element("CompleteMultipartUpload")
        for number, etag in enumerate(upload.etags, start=1):
            part = ET.SubElement(root, "Part")
            ET.SubElement(part, "PartNumber").text = str(number)
            ET.SubElement(part, "ETag").text = etag
        try:
            answer = self._send("POST", key, {"uploadId": upload.upload_id}, ET.tostring(root))
        except NotFoundError:
            # Put together by an earlier attempt whose answer was lost; if not, the object has no size.
            return
        # A store that takes long says 200 before it knows.
        if b"<Error>" in answer:
            raise from_answer(self.place, answer.decode(errors="replace"))

    def drop(self, key: str, upload_id: str) -> None:
        """Removes parts."""
        with suppress(NotFoundError):
            self._send("DELETE", key, {"uploadId": upload_id})

    def _create_multipart(self, key: str) -> str:
        answer = self._send("POST", key, {"uploads": ""})
        upload_id = next((e.text for e in ET.fromstring(answer).iter() if _local_name(e) == "UploadId"), None)  # noqa: S314 - from the store that holds the checkpoints
        if not upload_id:
            raise from_answer(self.place, answer.decode(errors="replace"))
        return upload_id

    def _send(self, method: str, key: str, query: Mapping[str, str], body: bytes = b"") -> bytes:
        """Makes a request that the library has no public method for, by a URL that it signs."""
        url = self._client.presign(method, self._name, key, query)
        response = self._client.http.request(method, url, body=body)
        if response.status not in {200, 204}:
            text = response.data.decode(errors="replace")
            raise from_answer(self.place, f"Response code: {response.status} {text}")
        return response.data


def _local_name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
