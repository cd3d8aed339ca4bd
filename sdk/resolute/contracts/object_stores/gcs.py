"""Buckets of Google Cloud Storage, by Google's own library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, final

import requests
from google.api_core import exceptions as answers
from google.auth import exceptions as auth
from google.cloud import storage as library
from google.cloud.storage.retry import DEFAULT_RETRY

from resolute.contracts.object_stores.client import BLOCK_BYTES, ObjectStoreClient
from resolute.contracts.object_stores.location import BucketStorage
from resolute.contracts.object_stores.names import gcs_problem
from resolute.errors import (
    FailedPreconditionError,
    NotFoundError,
    QuotaError,
    ResoluteError,
    UnavailableError,
)

_PART_BYTES = 16 << 20
_TIMEOUT = (5.0, 60.0)
# The platform's own patience says how long a store that is away is waited for.
_RETRY = DEFAULT_RETRY.with_timeout(5.0)


def open_bucket(storage: BucketStorage) -> ObjectStoreClient:
    """Opens a bucket with the credentials that Google's tools would use; nothing is asked of it yet.

    Raises:
        FailedPreconditionError: There are no credentials.
    """
    options = {"api_endpoint": storage.endpoint_url} if storage.endpoint_url else None
    try:
        client = library.Client(client_options=options)
    except (auth.GoogleAuthError, OSError) as error:
        raise FailedPreconditionError(
            f"bucket {storage.bucket!r} of Google cannot be used: {error}; set "
            "GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`"
        ) from error
    return GcsClient(client.bucket(storage.bucket), place=f"bucket {storage.bucket!r} of Google")


@final
class GcsClient:
    """The objects of a bucket.

    Args:
        bucket: The bucket.
        place: Names it in messages.
    """

    def __init__(self, bucket: library.Bucket, *, place: str) -> None:
        self.place = place
        self._bucket = bucket

    def problem(self, key: str) -> str:
        """What is wrong with a name; empty when nothing is."""
        return gcs_problem(key)

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Keeps an object; of a large one only what was lost on the way is sent again."""
        with self._errors():
            blob = self._bucket.blob(key, chunk_size=_PART_BYTES)
            blob.upload_from_file(
                content,
                size=size,
                content_type="application/octet-stream",
                timeout=_TIMEOUT,
                retry=_RETRY,
                checksum=None,
            )

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Iterator[bytes]:
        """Yields the bytes of an object."""
        with self._errors(key):
            blob = self._bucket.blob(key)
            if size:
                with suppress(answers.RequestRangeNotSatisfiable):
                    yield blob.download_as_bytes(
                        start=start, end=start + size - 1, raw_download=True, timeout=_TIMEOUT, retry=_RETRY
                    )
                return
            with blob.open("rb", chunk_size=_PART_BYTES, raw_download=True, timeout=_TIMEOUT) as content:
                content.seek(start)
                while piece := content.read(BLOCK_BYTES):
                    yield piece

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields names and bytes."""
        with self._errors():
            for blob in self._bucket.list_blobs(prefix=prefix, timeout=_TIMEOUT, retry=_RETRY):
                yield blob.name, blob.size or 0

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects."""
        with self._errors():
            self._bucket.delete_blobs(
                [self._bucket.blob(key) for key in keys],
                on_error=lambda _: None,
                timeout=_TIMEOUT,
                retry=_RETRY,
            )

    @contextmanager
    def _errors(self, key: str = "") -> Iterator[None]:
        """Says what the store answers, or that it does not, in the platform's own errors.

        Args:
            key: The object that may be missing; empty where only the bucket can be.
        """
        try:
            yield
        except ResoluteError:
            raise
        except answers.NotFound as error:
            if not key or "bucket does not exist" in str(error):
                raise FailedPreconditionError(
                    f"{self.place} is not there; make the bucket, or correct its name"
                ) from error
            raise NotFoundError(f"{self.place} has no object {key!r}") from error
        except (answers.TooManyRequests, answers.ServerError, answers.RetryError) as error:
            raise UnavailableError(f"{self.place} is busy ({error}); try again") from error
        except answers.ClientError as error:
            if "quota" in str(error).lower():
                raise QuotaError(f"{self.place} is full ({error}); free some space and repeat") from error
            raise FailedPreconditionError(
                f"{self.place} refuses this ({error}); check the credentials and what they allow"
            ) from error
        except auth.TransportError as error:
            raise UnavailableError(
                f"the credentials for {self.place} cannot be had ({error}); try again"
            ) from error
        except auth.GoogleAuthError as error:
            raise FailedPreconditionError(
                f"{self.place} cannot be used: {error}; check GOOGLE_APPLICATION_CREDENTIALS"
            ) from error
        except (requests.RequestException, OSError) as error:
            raise UnavailableError(f"{self.place} does not answer ({error}); try again") from error
