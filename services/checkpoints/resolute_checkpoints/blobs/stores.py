"""From where checkpoints are said to lie to the store that reaches them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from resolute.errors import InvalidArgumentError, PermissionDeniedError, Violation
from resolute_checkpoints.blobs.base import BlobStore
from resolute_checkpoints.blobs.buckets import AMAZON, BucketClient, BucketSettings
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.blobs.s3 import BucketStore
from resolute_checkpoints.checkpoint import BucketStorage, DirectoryStorage, Storage


class Stores:
    """Opens stores.

    Args:
        roots: Directories below which directory stores may lie; empty allows every directory.
        buckets: How buckets are used.
    """

    def __init__(self, roots: Sequence[Path] = (), *, buckets: BucketSettings | None = None) -> None:
        self._roots = tuple(roots)
        self._buckets = buckets or BucketSettings()
        self._clients: dict[tuple[str, str], BucketClient] = {}
        self._lock = threading.Lock()

    def open(self, storage: Storage) -> BlobStore:
        """Gives the store of some storage; nothing is asked of it yet.

        Raises:
            InvalidArgumentError: The storage is described wrongly.
            PermissionDeniedError: It lies outside of what the service may use.
        """
        if isinstance(storage, BucketStorage):
            return self._bucket(storage)
        return self._directory(storage)

    def _bucket(self, storage: BucketStorage) -> BucketStore:
        allowed = self._buckets.allowed
        full_name = f"{storage.endpoint_url.rstrip('/') or AMAZON}/{storage.bucket}"
        if allowed and storage.bucket not in allowed and full_name not in allowed:
            raise PermissionDeniedError(
                f"checkpoints may not lie in bucket {full_name}; this service allows {', '.join(allowed)}"
            )
        if ".." in storage.prefix.split("/") or storage.prefix.strip("/") != storage.prefix:
            message = (
                f"storage.bucket.prefix is {storage.prefix!r}; write it without '..' and slashes around it"
            )
            raise InvalidArgumentError(message, violations=[Violation("storage.bucket.prefix", message)])
        return BucketStore(self._client(storage), storage, settings=self._buckets)

    def _client(self, storage: BucketStorage) -> BucketClient:
        # Clients hold connections: one for each store, for as long as the service lives.
        key = (storage.endpoint_url, storage.credentials)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = BucketClient(
                    self._buckets, endpoint_url=storage.endpoint_url, credentials=storage.credentials
                )
            return self._clients[key]

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
