"""From where checkpoints are said to lie to the store that reaches them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import InvalidArgumentError, PermissionDeniedError, Violation
from resolute_checkpoints.blobs.base import BlobStore
from resolute_checkpoints.blobs.buckets.base import BucketSettings, Client
from resolute_checkpoints.blobs.buckets.object_store import ObjectStore
from resolute_checkpoints.blobs.buckets.s3 import S3Client
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.domain.checkpoint import BucketStorage, DirectoryStorage, Provider, Storage


class StoreFactory:
    """Opens stores.

    Args:
        roots: Directories below which directory stores may lie; empty allows every directory.
        buckets: How buckets are used.
        clock: Tells when URLs run out.
    """

    def __init__(
        self,
        roots: Sequence[Path] = (),
        *,
        buckets: BucketSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._roots = tuple(roots)
        self._buckets = buckets or BucketSettings()
        self._clock = clock
        self._clients: dict[tuple[Provider, str], Client] = {}
        self._lock = threading.Lock()

    def open(self, storage: Storage) -> BlobStore:
        """Gives the store of some storage; nothing is asked of it yet.

        Raises:
            FailedPreconditionError: The service has no library or no credentials for it.
            InvalidArgumentError: The storage is described wrongly.
            PermissionDeniedError: It lies outside of what the service may use.
        """
        if isinstance(storage, BucketStorage):
            return self._bucket(storage)
        return self._directory(storage)

    def _bucket(self, storage: BucketStorage) -> ObjectStore:
        client = self._client(storage)
        allowed = self._buckets.allowed
        full_name = f"{client.address}/{storage.bucket}"
        if allowed and storage.bucket not in allowed and full_name not in allowed:
            raise PermissionDeniedError(
                f"checkpoints may not lie in bucket {full_name}; this service allows {', '.join(allowed)}"
            )
        if ".." in storage.prefix.split("/") or storage.prefix.strip("/") != storage.prefix:
            message = (
                f"storage.bucket.prefix is {storage.prefix!r}; write it without '..' and slashes around it"
            )
            raise InvalidArgumentError(message, violations=[Violation("storage.bucket.prefix", message)])
        return ObjectStore(client, storage, settings=self._buckets)

    def _client(self, storage: BucketStorage) -> Client:
        # Clients hold connections: one for each store, for as long as the service lives.
        key = (storage.provider, storage.endpoint_url)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._new_client(storage)
            return self._clients[key]

    def _new_client(self, storage: BucketStorage) -> Client:
        # The libraries of Google and Azure are optional, and slow to import.
        if storage.provider is Provider.GCS:
            from resolute_checkpoints.blobs.buckets.gcs import GcsClient

            return GcsClient(self._buckets, endpoint_url=storage.endpoint_url)
        if storage.provider is Provider.AZURE:
            from resolute_checkpoints.blobs.buckets.azure import AzureClient

            return AzureClient(self._buckets, endpoint_url=storage.endpoint_url, clock=self._clock)
        return S3Client(self._buckets, endpoint_url=storage.endpoint_url)

    def _directory(self, storage: DirectoryStorage) -> DirectoryStore:
        path = Path(storage.path)
        if not path.is_absolute() or ".." in path.parts or "\0" in storage.path:
            message = f"storage.directory.path is {storage.path!r}; it must be absolute, without '..'"
            raise InvalidArgumentError(message, violations=[Violation("storage.directory.path", message)])
        real = Path(os.path.realpath(path))
        if self._roots and not any(real.is_relative_to(os.path.realpath(root)) for root in self._roots):
            allowed = ", ".join(map(str, self._roots))
            raise PermissionDeniedError(
                f"checkpoints may not lie in {path}; this service allows directories below {allowed}"
            )
        return DirectoryStore(path)
