"""Buckets of Google Cloud Storage, by Google's library. One request uploads a file, whatever its size."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, BinaryIO, final

import google.auth
from google.api_core import exceptions as answers
from google.auth import exceptions as auth
from google.auth.credentials import Signing
from google.cloud import storage as library
from google.cloud.storage.retry import DEFAULT_RETRY
from google.oauth2 import service_account

from resolute.contracts.object_stores.access import CONNECT_SECONDS, READ_SECONDS, StoreAccess
from resolute.contracts.object_stores.bucket import BLOCK_BYTES, SignedUpload, map_concurrently
from resolute.contracts.object_stores.errors import (
    ACCESS_DENIED,
    NO_BUCKET,
    Answers,
    shortened,
    transport_errors,
)
from resolute.contracts.object_stores.names import gcs_problem
from resolute.errors import (
    FailedPreconditionError,
    NotFoundError,
    QuotaError,
    ResoluteError,
    UnavailableError,
)

_ADDRESS = "https://storage.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"
_PART_BYTES = 16 << 20
_TIMEOUT = (CONNECT_SECONDS, READ_SECONDS)
_HOW: dict[str, Any] = {
    "timeout": _TIMEOUT,
    "retry": DEFAULT_RETRY.with_delay(initial=0.2, maximum=2.0).with_timeout(5.0),
}
_CREDENTIALS = "set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`"


def open_store(access: StoreAccess) -> GcsStore:
    """Opens the store; nothing is asked of it yet.

    Raises:
        FailedPreconditionError: There are no credentials. Those that sign are looked for at the first use.
    """
    store = GcsStore(access)
    if not access.signs:
        _ = store.client
    return store


@final
class GcsStore:
    """Connections to Google's store.

    Args:
        access: Address and credentials of the store.
    """

    def __init__(self, access: StoreAccess) -> None:
        self.access = access
        self.address = access.endpoint_url or _ADDRESS
        """Where it is."""
        self._lock = threading.Lock()
        self._client: library.Client | None = None

    def bucket(self, name: str) -> GcsBucket:
        """Returns a bucket of the store."""
        return GcsBucket(self, name)

    @property
    def client(self) -> library.Client:
        """The library's client.

        Raises:
            FailedPreconditionError: There are no credentials, or none that sign where that is needed.
        """
        with self._lock:
            if self._client is None:
                self._client = self._new_client()
            return self._client

    def _new_client(self) -> library.Client:
        options = {"api_endpoint": self.access.endpoint_url} if self.access.endpoint_url else None
        caller, remedy = self.access.caller, self.access.credentials_help or _CREDENTIALS
        try:
            if not self.access.signs:
                return library.Client(client_options=options)
            credentials, project = self._signing_credentials()
        except (auth.GoogleAuthError, OSError) as error:
            raise FailedPreconditionError(
                f"{caller} has no credentials for Google Cloud Storage ({shortened(error)}); {remedy}"
            ) from error
        if not isinstance(credentials, Signing):
            raise FailedPreconditionError(
                f"the credentials of {caller} for Google Cloud Storage ({type(credentials).__name__}) cannot "
                f"sign; {remedy}"
            )
        return library.Client(project=project, credentials=credentials, client_options=options)

    def _signing_credentials(self) -> tuple[Any, str | None]:
        file = self.access.credentials_file
        if file is None:
            credentials, project = google.auth.default(scopes=[_SCOPE])
            return credentials, project
        try:
            own = service_account.Credentials.from_service_account_file(str(file), scopes=[_SCOPE])
        except (OSError, ValueError) as error:
            raise FailedPreconditionError(
                f"the credentials {file} cannot be read ({shortened(error)}); "
                f"{self.access.credentials_help or _CREDENTIALS}"
            ) from error
        return own, own.project_id


@final
class GcsBucket:
    """One bucket.

    Args:
        store: The connections to the store.
        name: Name of the bucket.
    """

    problem = staticmethod(gcs_problem)
    """What is wrong with a name; empty when nothing is."""

    def __init__(self, store: GcsStore, name: str) -> None:
        self.place = f"bucket {name!r} of Google Cloud Storage"
        self._store = store
        self._name = name
        self._answers = Answers(self.place, store.access)

    def exists(self) -> bool:
        """Whether the bucket exists, asked in a way that anyone who may list objects may ask."""
        with self._errors():
            try:
                next(iter(self._store.client.list_blobs(self._name, max_results=1, **_HOW)), None)
            except answers.NotFound:
                return False
            return True

    def make(self) -> None:
        """Makes the bucket, in the project of the credentials."""
        with self._errors():
            self._store.client.create_bucket(self._name, **_HOW)

    def missing(self) -> ResoluteError:
        """Makes the error that says that the bucket does not exist."""
        return self._answers.from_code(NO_BUCKET, "")

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Writes an object; of a large one only what was lost on the way is sent again."""
        with self._errors():
            self._bucket.blob(key, chunk_size=_PART_BYTES).upload_from_file(
                content, size=size, content_type="application/octet-stream", checksum=None, **_HOW
            )

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Generator[bytes, None, None]:
        """Yields the bytes of an object."""
        with self._errors(key):
            blob = self._bucket.blob(key)
            if size:
                with suppress(answers.RequestRangeNotSatisfiable):
                    yield blob.download_as_bytes(start=start, end=start + size - 1, raw_download=True, **_HOW)
                return
            with blob.open("rb", chunk_size=_PART_BYTES, raw_download=True, timeout=_TIMEOUT) as content:
                content.seek(start)
                while piece := content.read(BLOCK_BYTES):
                    yield piece

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields names and bytes."""
        fields = "items(name,size),nextPageToken"
        with self._errors():
            for blob in self._store.client.list_blobs(self._name, prefix=prefix, fields=fields, **_HOW):
                yield blob.name, int(blob.size or 0)

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects, a few at a time."""
        with self._errors():
            map_concurrently(self._delete, keys)

    def read_url(self, key: str) -> str:
        """Signs a URL that gives an object."""
        return self._signed("GET", key)

    def sign_upload(self, key: str, *, size: int) -> SignedUpload:
        """Signs one URL: a single request takes five terabytes."""
        return SignedUpload((self._signed("PUT", key),))

    def finish_upload(self, key: str, *, upload_id: str, tags: Sequence[str]) -> None:
        """Does nothing: files go whole."""

    def abort_upload(self, key: str, *, upload_id: str) -> None:
        """Does nothing: files go whole."""

    @property
    def _bucket(self) -> Any:
        return self._store.client.bucket(self._name)

    def _delete(self, key: str) -> None:
        with suppress(answers.NotFound):
            self._bucket.delete_blob(key, **_HOW)

    def _signed(self, method: str, key: str) -> str:
        with self._errors():
            url: str = self._bucket.blob(key).generate_signed_url(
                version="v4",
                expiration=timedelta(seconds=self._store.access.url_seconds),
                method=method,
                api_access_endpoint=self._store.client.api_endpoint,
            )
            return url

    @contextmanager
    def _errors(self, key: str = "") -> Iterator[None]:
        """Turns what the store answers, or that it does not, into the platform's errors.

        Args:
            key: The object that may be missing; empty where only the bucket can be.
        """
        with transport_errors(self.place):
            try:
                yield
            except ResoluteError:
                raise
            except answers.GoogleAPICallError as error:
                raise self._refusal(error, key) from error
            except auth.RefreshError as error:
                raise self._answers.from_code(ACCESS_DENIED, shortened(error)) from error
            except (answers.RetryError, auth.TransportError) as error:
                message = shortened(getattr(error, "cause", None) or error)
                raise UnavailableError(f"{self.place} does not answer ({message}); try again") from error
            except auth.GoogleAuthError as error:
                raise self._answers.no_credentials(shortened(error), _CREDENTIALS) from error
            except ValueError as error:
                raise self._answers.no_credentials(
                    f"{shortened(error)}; check the bucket's name", _CREDENTIALS
                ) from error

    def _refusal(self, error: answers.GoogleAPICallError, key: str) -> ResoluteError:
        message, status = shortened(error), int(error.code or 0)
        if isinstance(error, answers.NotFound):
            if key and "bucket does not exist" not in message:
                return NotFoundError(f"{self.place} has no object {key!r}")
            return self._answers.from_code(NO_BUCKET, "")
        if status < 500 and "quota" in message.lower() and not isinstance(error, answers.TooManyRequests):
            return QuotaError(f"{self.place} is full ({message}); free some space and repeat")
        if isinstance(error, (answers.Forbidden, answers.Unauthorized)):
            return self._answers.from_code(ACCESS_DENIED, message)
        if isinstance(error, answers.BadRequest):
            return self._answers.from_code("InvalidBucketName", message)
        return self._answers.from_code(str(status), message, status=status)
