"""Containers of Azure Blob Storage, by Azure's own library."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, final

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.storage.blob import ContainerClient, LinearRetry

from resolute.contracts.object_stores.client import ObjectStoreClient
from resolute.contracts.object_stores.location import BucketStorage
from resolute.contracts.object_stores.names import azure_problem
from resolute.errors import (
    FailedPreconditionError,
    NotFoundError,
    ResoluteError,
    UnavailableError,
)

_PART_BYTES = 16 << 20
_PARTS_AT_ONCE = 4
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_BEYOND = 416
_CONNECTION, _KEY = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY"


def open_bucket(storage: BucketStorage) -> ObjectStoreClient:
    """Opens a container; nothing is asked of it yet.

    Raises:
        FailedPreconditionError: Nothing says in which account it is.
    """
    place = f"container {storage.bucket!r} of Azure"
    settings: dict[str, Any] = {
        "container_name": storage.bucket,
        "max_single_put_size": _PART_BYTES,
        "max_block_size": _PART_BYTES,
        # Blocks are read one after another, as they are summed up.
        "use_byte_buffer": True,
        "max_single_get_size": _PART_BYTES,
        "max_chunk_get_size": _PART_BYTES,
        "connection_timeout": 5,
        "read_timeout": 60,
        # The platform's own patience says how long a store that is away is waited for.
        "retry_policy": LinearRetry(backoff=1, retry_total=2, random_jitter_range=0),
    }
    connection = storage.connection_string or (
        "" if storage.endpoint_url else os.environ.get(_CONNECTION, "")
    )
    try:
        if connection:
            return AzureClient(ContainerClient.from_connection_string(connection, **settings), place=place)
        if storage.endpoint_url:
            credential = storage.secret_key or os.environ.get(_KEY) or None
            client = ContainerClient(storage.endpoint_url, credential=credential, **settings)
            return AzureClient(client, place=place)
    except ValueError:
        # What the library says may quote the secret.
        raise FailedPreconditionError(
            f"{place} cannot be used: connection_string, account_url or credential is malformed; "
            "copy it again"
        ) from None
    raise FailedPreconditionError(
        f"{place} cannot be used: nothing says in which account it is; give connection_string or "
        f"account_url, or set {_CONNECTION}"
    )


@final
class AzureClient:
    """The blobs of a container.

    Args:
        container: The container.
        place: Names it in messages.
    """

    def __init__(self, container: ContainerClient, *, place: str) -> None:
        self.place = place
        self._container = container

    def problem(self, key: str) -> str:
        """What is wrong with a name; empty when nothing is."""
        return azure_problem(key)

    def put(self, key: str, content: BinaryIO, *, size: int) -> None:
        """Keeps a blob; a large one goes in blocks, several at once."""
        with self._errors(key):
            self._container.upload_blob(
                key, content, length=size, overwrite=True, max_concurrency=_PARTS_AT_ONCE
            )

    def read(self, key: str, *, start: int = 0, size: int = 0) -> Iterator[bytes]:
        """Yields the bytes of a blob."""
        with self._errors(key):
            wanted = (start if start or size else None, size or None)
            try:
                found = self._container.download_blob(key, *wanted)
            except HttpResponseError as error:
                if error.status_code == _BEYOND:
                    return
                raise
            yield from found.chunks()

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields names and bytes."""
        with self._errors(prefix):
            for blob in self._container.list_blobs(name_starts_with=prefix):
                yield blob.name, blob.size or 0

    def delete(self, keys: Iterable[str]) -> None:
        """Removes blobs."""
        for key in keys:
            with suppress(NotFoundError), self._errors(key):
                self._container.delete_blob(key)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        """Says what the store answers, or that it does not, in the platform's own errors."""
        try:
            yield
        except ResoluteError:
            raise
        except ResourceNotFoundError as error:
            if _code(error) == "ContainerNotFound":
                raise FailedPreconditionError(
                    f"{self.place} is not there; make the container, or correct its name"
                ) from error
            raise NotFoundError(f"{self.place} has no blob {key!r}") from error
        except HttpResponseError as error:
            raise self._refusal(error) from error
        except (AzureError, OSError) as error:
            raise UnavailableError(f"{self.place} does not answer ({error}); try again") from error

    def _refusal(self, error: HttpResponseError) -> ResoluteError:
        code = _code(error)
        if error.status_code in _BUSY or error.status_code is None:
            return UnavailableError(f"{self.place} is busy ({code}); try again")
        return FailedPreconditionError(
            f"{self.place} refuses this ({code}); check the credentials and what they allow"
        )


def _code(error: HttpResponseError) -> str:
    code = getattr(error, "error_code", None) or error.reason or error.status_code
    return str(getattr(code, "value", code))
