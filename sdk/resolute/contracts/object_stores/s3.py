"""Buckets of S3, and of whatever speaks it, by the minio library."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, final
from urllib.parse import urlsplit

import certifi
import urllib3
from minio import Minio
from minio.credentials.credentials import Credentials
from minio.credentials.providers import (
    AWSConfigProvider,
    ChainedProvider,
    EnvAWSProvider,
    EnvMinioProvider,
    IamAwsProvider,
    Provider,
    StaticProvider,
)
from minio.deleteobjects import DeleteObject
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from resolute.contracts.object_stores.client import BLOCK_BYTES, ObjectStoreClient
from resolute.contracts.object_stores.location import BucketStorage
from resolute.contracts.object_stores.names import s3_problem
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    QuotaError,
    ResoluteError,
    UnavailableError,
)

_AMAZON = "https://s3.amazonaws.com"
_CONNECTIONS = 32
_TIMEOUT = urllib3.Timeout(connect=5.0, read=60.0)
_ROLE_TIMEOUT = urllib3.Timeout(connect=1.0, read=5.0)
_RETRIES = urllib3.Retry(
    total=3, backoff_factor=0.2, status_forcelist=(500, 502, 503, 504), allowed_methods=None
)
_PART_BYTES = 16 << 20
_MOST_PARTS = 9000
_PARTS_AT_ONCE = 4
_MISSING = frozenset({"NoSuchKey", "NotFound"})
_FULL = frozenset({"QuotaExceeded", "StorageFull", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"})
_BUSY = frozenset({"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown"})
_CODES = {403: "AccessDenied", 404: "NotFound", 416: "InvalidRange"}
"""What a status means where the answer says no more."""
_SHOWN = 300


def open_bucket(storage: BucketStorage) -> ObjectStoreClient:
    """Opens a bucket; nothing is asked of it yet.

    Raises:
        InvalidArgumentError: The address of the store is not one.
    """
    address = storage.endpoint_url or _variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") or _AMAZON
    url = urlsplit(address)
    if (
        url.scheme not in {"http", "https"}
        or not url.netloc
        or url.path.strip("/")
        or url.query
        or url.username
    ):
        raise InvalidArgumentError(
            f"the endpoint_url of bucket {storage.bucket!r} is no address of a store: write it as "
            "https://host or http://host:port"
        )
    client = Minio(
        url.netloc,
        secure=url.scheme == "https",
        region=_variable("AWS_REGION", "AWS_DEFAULT_REGION") or None,
        credentials=_credentials(storage),
        http_client=_pool(_TIMEOUT, _RETRIES),
    )
    return S3Client(client, storage.bucket, place=f"bucket {storage.bucket!r} of {address}")


@final
class S3Client:
    """The objects of a bucket.

    Args:
        client: Talks to the store.
        bucket: The bucket.
        place: Names the bucket in messages.
    """

    def __init__(self, client: Minio, bucket: str, *, place: str) -> None:
        self.place = place
        self._client = client
        self._bucket = bucket

    def problem(self, key: str) -> str:
        """What is wrong with a name; empty when nothing is."""
        return s3_problem(key)

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Keeps an object; a large one goes in parts, several at once."""
        part_size = max(_PART_BYTES, -(-size // _MOST_PARTS))
        with self._errors(key):
            self._client.put_object(
                *(self._bucket, key, content, size),
                part_size=part_size,
                num_parallel_uploads=_PARTS_AT_ONCE,
            )

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Iterator[bytes]:
        """Yields the bytes of an object."""
        with self._errors(key):
            try:
                response = self._client.get_object(self._bucket, key, offset=start, length=size)
            except (S3Error, InvalidResponseError) as error:
                if _is_beyond(error):
                    return
                raise
            whole = False
            try:
                yield from response.stream(BLOCK_BYTES)
                whole = True
            finally:
                # What was broken off must not be found by the next one that uses the connection.
                if not whole:
                    response.close()
                response.release_conn()

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields names and bytes."""
        with self._errors(prefix):
            for item in self._client.list_objects(self._bucket, prefix=prefix, recursive=True):
                yield item.object_name or "", item.size or 0

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects."""
        with self._errors("objects"):
            doomed = (DeleteObject(key) for key in keys)
            failed = list(self._client.remove_objects(self._bucket, doomed))
        if failed:
            raise UnavailableError(
                f"{self.place} did not remove {len(failed)} objects, the first for {failed[0].code}: "
                f"{failed[0].message}; try again"
            )

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        """Says what the store answers, or that it does not, in the platform's own errors."""
        try:
            yield
        except ResoluteError:
            raise
        except S3Error as error:
            raise self._error(key, error.code or "", error.message or "") from error
        except InvalidResponseError as error:
            # A store, or a proxy before it, that does not say that its answer is XML.
            raise self._error(key, *_code_in(str(error))) from error
        except ServerError as error:
            raise UnavailableError(f"{self.place} answered {error.status_code}; try again") from error
        except (MinioException, urllib3.exceptions.HTTPError, OSError) as error:
            raise UnavailableError(
                f"{self.place} does not answer ({_shortened(error)}); try again"
            ) from error
        except ValueError as error:
            raise FailedPreconditionError(
                f"{self.place} cannot be used: {_shortened(error)}; check the bucket's name, and set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ) from error

    def _error(self, key: str, code: str, message: str) -> ResoluteError:
        said = f"{code}: {message}"[:_SHOWN] if message else code
        if code == "NoSuchBucket":
            return FailedPreconditionError(f"{self.place} is not there; make the bucket, or correct its name")
        if code in _MISSING:
            return NotFoundError(f"{self.place} has no object {key!r}")
        if code == "RequestTimeTooSkewed":
            return FailedPreconditionError(
                f"{self.place} and this machine differ in time ({said}); set its clock"
            )
        if code in _FULL:
            return QuotaError(f"{self.place} is full ({said}); free some space and repeat")
        if code in _BUSY or not code:
            return UnavailableError(f"{self.place} is busy ({said or 'it does not say why'}); try again")
        return FailedPreconditionError(
            f"{self.place} refuses this ({said}); check the credentials and what they allow"
        )


def _is_beyond(error: MinioException) -> bool:
    code = error.code if isinstance(error, S3Error) else _code_in(str(error))[0]
    return code == "InvalidRange"


def _code_in(answer: str) -> tuple[str, str]:
    code, found, rest = answer.partition("<Code>")[2].partition("</Code>")
    if found:
        return code, rest.partition("<Message>")[2].partition("</Message>")[0]
    for status, code in _CODES.items():
        if f"Response code: {status}" in answer:
            return code, ""
    return "", answer[:_SHOWN]


def _credentials(storage: BucketStorage) -> Provider:
    if storage.access_key:
        return StaticProvider(storage.access_key, storage.secret_key)
    return ChainedProvider([EnvAWSProvider(), EnvMinioProvider(), AWSConfigProvider(), _MachineRole()])


@final
class _MachineRole(Provider):
    """The role of a machine or container of Amazon's; elsewhere there is none, which is soon found out."""

    def __init__(self) -> None:
        self._provider = IamAwsProvider(http_client=_pool(_ROLE_TIMEOUT, urllib3.Retry(total=0)))

    def retrieve(self) -> Credentials:
        """Asks for the role's credentials.

        Raises:
            ValueError: There is no role.
        """
        if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise ValueError("the role of the machine is not to be asked for")
        try:
            return self._provider.retrieve()
        except (urllib3.exceptions.HTTPError, MinioException, OSError) as failure:
            raise ValueError("the machine has no role") from failure


def _pool(timeout: urllib3.Timeout, retries: urllib3.Retry) -> urllib3.PoolManager:
    return urllib3.PoolManager(
        maxsize=_CONNECTIONS,
        timeout=timeout,
        retries=retries,
        cert_reqs="CERT_REQUIRED",
        ca_certs=os.environ.get("SSL_CERT_FILE") or certifi.where(),
    )


def _variable(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _shortened(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:_SHOWN]
