"""Buckets of Google Cloud Storage, by Google's own library. A file goes by one request, whatever its size."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from resolute.contracts.object_stores.names import gcs_problem
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResoluteError,
    UnavailableError,
    Violation,
)
from resolute_checkpoints.blobs.base import FinishedUpload, Upload
from resolute_checkpoints.blobs.buckets.base import (
    CONNECT_SECONDS,
    READ_SECONDS,
    BucketSettings,
    missing_extra,
    new_pool,
)
from resolute_checkpoints.blobs.buckets.errors import (
    ACCESS_DENIED,
    NO_BUCKET,
    from_code,
    shortened,
    transport_errors,
)
from resolute_checkpoints.blobs.buckets.object_store import map_concurrently
from resolute_checkpoints.domain.checkpoint import File

try:
    import google.auth
    from google.api_core import exceptions as answers
    from google.auth import exceptions as auth_errors
    from google.auth.credentials import Signing
    from google.cloud import storage as library
    from google.cloud.storage.retry import DEFAULT_RETRY
    from google.oauth2 import service_account
except ImportError as error:
    raise missing_extra("gcs", what="a bucket of Google Cloud Storage") from error

_SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"
_HOW: dict[str, Any] = {
    "timeout": (CONNECT_SECONDS, READ_SECONDS),
    "retry": DEFAULT_RETRY.with_delay(initial=0.2, maximum=2.0).with_timeout(5.0),
}
_CREDENTIALS = (
    "set RESOLUTE_CHECKPOINTS_GCS_CREDENTIALS, or GOOGLE_APPLICATION_CREDENTIALS, to the file with the key "
    "of a service account: URLs are signed by it"
)


class GcsClient:
    """The client of Google's store. Credentials are looked for when a bucket is first used.

    Args:
        settings: How the service uses buckets.
        endpoint_url: Empty: Google has one address.

    Raises:
        InvalidArgumentError: There is an address.
    """

    address = "https://storage.googleapis.com"

    def __init__(self, settings: BucketSettings, *, endpoint_url: str) -> None:
        if endpoint_url:
            name = "storage.bucket.endpoint_url"
            message = f"{name} is {endpoint_url!r}; leave it out for Google Cloud Storage"
            raise InvalidArgumentError(message, violations=[Violation(name, message)])
        self.known_buckets: set[str] = set()
        self.http = new_pool()
        self.expires = timedelta(seconds=settings.url_seconds)
        """How long URLs can be used."""
        self._file = settings.gcs_credentials
        self._lock = threading.Lock()
        self._library: library.Client | None = None

    def bucket(self, name: str) -> GcsBucket:
        """Gives a bucket of the store."""
        return GcsBucket(self, name)

    @property
    def library(self) -> library.Client:
        """The library's client.

        Raises:
            FailedPreconditionError: There are no credentials, or none that sign.
        """
        with self._lock:
            if self._library is None:
                credentials, project = self._credentials()
                if not isinstance(credentials, Signing):
                    raise FailedPreconditionError(
                        f"the checkpoints service's credentials for Google Cloud Storage "
                        f"({type(credentials).__name__}) cannot sign; {_CREDENTIALS}"
                    )
                self._library = library.Client(project=project, credentials=credentials)
            return self._library

    def _credentials(self) -> tuple[Any, str | None]:
        if self._file is None:
            found, project = google.auth.default(scopes=[_SCOPE])
            return found, project
        try:
            own = service_account.Credentials.from_service_account_file(str(self._file), scopes=[_SCOPE])
        except (OSError, ValueError) as error:
            raise FailedPreconditionError(
                f"the credentials {self._file} cannot be read ({shortened(error)}); {_CREDENTIALS}"
            ) from error
        return own, own.project_id


class GcsBucket:
    """One bucket.

    Args:
        client: Talks to the store.
        name: Name of the bucket.
    """

    def __init__(self, client: GcsClient, name: str) -> None:
        self._client = client
        self._name = name
        self.place = f"bucket {name!r} of Google Cloud Storage"
        """Which it is, for messages."""

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what the store answers, or that it does not, into errors that name the place and the remedy.

        Raises:
            FailedPreconditionError: The store refuses the service, or there is no such bucket.
            UnavailableError: Anything else, which may pass.
        """
        with transport_errors(self.place):
            try:
                yield
            except ResoluteError:
                raise
            except answers.NotFound as error:
                # Objects that are not there are nobody's error.
                raise from_code(self.place, NO_BUCKET, "") from error
            except (answers.Forbidden, answers.Unauthorized, auth_errors.RefreshError) as error:
                raise from_code(self.place, ACCESS_DENIED, shortened(error)) from error
            except auth_errors.DefaultCredentialsError as error:
                raise FailedPreconditionError(
                    f"{self.place} cannot be used: the checkpoints service has no credentials; {_CREDENTIALS}"
                ) from error
            except answers.BadRequest as error:
                raise from_code(self.place, "InvalidBucketName", shortened(error)) from error
            except (answers.RetryError, auth_errors.TransportError) as error:
                said = shortened(getattr(error, "cause", None) or error)
                raise UnavailableError(f"{self.place} does not answer ({said}); try again") from error
            except (answers.GoogleAPIError, auth_errors.GoogleAuthError) as error:
                raise UnavailableError(f"{self.place} cannot be used: {shortened(error)}") from error
            except ValueError as error:
                raise FailedPreconditionError(
                    f"{self.place} cannot be used: {shortened(error)}; check the bucket's name"
                ) from error

    def exists(self) -> bool:
        """Whether the bucket is there, asked in a way that whoever may list objects may ask."""
        try:
            next(iter(self._client.library.list_blobs(self._name, max_results=1, **_HOW)), None)
        except answers.NotFound:
            return False
        return True

    def make(self) -> None:
        """Makes the bucket, in the project of the credentials."""
        self._client.library.create_bucket(self._name, **_HOW)

    def problem(self, key: str) -> str:
        """What is wrong with a key; empty when nothing is."""
        return gcs_problem(key)

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Gives keys that begin with a prefix, and their bytes."""
        fields = "items(name,size),nextPageToken"
        for blob in self._client.library.list_blobs(self._name, prefix=prefix, fields=fields, **_HOW):
            yield blob.name, int(blob.size or 0)

    def remove(self, keys: Iterable[str]) -> None:
        """Removes objects, a few at a time."""
        map_concurrently(self._remove, keys)

    def read_url(self, key: str) -> str:
        """Presigns a URL that gives an object."""
        return self._signed("GET", key)

    def upload(self, key: str, file: File) -> Upload:
        """Presigns one URL: a single request takes five terabytes."""
        return Upload(file.path, (self._signed("PUT", key),))

    def finish(self, key: str, upload: FinishedUpload) -> None:
        """Does nothing: files go whole."""

    def drop(self, key: str, upload_id: str) -> None:
        """Does nothing: files go whole."""

    def _remove(self, key: str) -> None:
        try:
            self._client.library.bucket(self._name).delete_blob(key, **_HOW)
        except answers.NotFound:
            return

    def _signed(self, method: str, key: str) -> str:
        client = self._client.library
        url: str = (
            client.bucket(self._name)
            .blob(key)
            .generate_signed_url(
                version="v4",
                expiration=self._client.expires,
                method=method,
                api_access_endpoint=client.api_endpoint,
            )
        )
        return url
