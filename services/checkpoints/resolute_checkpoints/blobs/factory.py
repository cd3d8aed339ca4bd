"""Opens the store for the recorded location of checkpoints."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.object_stores.access import parse_address
from resolute.contracts.object_stores.bucket import Store
from resolute.contracts.object_stores.factory import open_store
from resolute.errors import (
    FailedPreconditionError,
)
from resolute_checkpoints.blobs.base import BlobStore
from resolute_checkpoints.blobs.buckets.bucket_store import BucketStore, KnownBuckets
from resolute_checkpoints.blobs.buckets.egress import require_reachable
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.blobs.roots import Roots
from resolute_checkpoints.blobs.verification import KnownDigests
from resolute_checkpoints.domain.checkpoint import BucketStorage, DirectoryStorage, Provider, Storage
from resolute_serving.validation import invalid

_ENDPOINT = "storage.bucket.endpoint_url"


class StoreFactory:
    """Opens stores.

    Args:
        roots: The allowed places of stores.
        buckets: Settings for buckets.
        clock: Clock for the expiry of URLs.
    """

    def __init__(
        self,
        *,
        roots: Roots | None = None,
        buckets: BucketSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._roots = roots or Roots()
        self._buckets = buckets or BucketSettings()
        self._clock = clock
        self._stores: dict[tuple[Provider, str], tuple[Store, KnownBuckets]] = {}
        self._lock = threading.Lock()
        self._known = KnownDigests()

    def open(self, storage: Storage, *, listed: bool = False) -> BlobStore:
        """Returns the store of a storage, without a request to it.

        To be called in a thread of its own, as the store's methods are: it follows the links of a directory,
        and a file system that is away may hold that for ever.

        Args:
            storage: Where it is.
            listed: Whether it must be below a root: a script or a person named it, not a config.

        Raises:
            FailedPreconditionError: The service has no library or no credentials for it.
            InvalidArgumentError: The storage is described wrongly.
            PermissionDeniedError: It lies outside of what the service may use.
        """
        if isinstance(storage, BucketStorage):
            return self._bucket(storage, listed=listed)
        return self._directory(storage, listed=listed)

    def admit(self, storage: Storage, *, below_roots: bool = False) -> None:
        """Checks that a config may name a storage, also one that the service cannot reach.

        Args:
            storage: The storage.
            below_roots: Whether a directory must lie below a root although the operator lists none.

        Raises:
            InvalidArgumentError: The storage is described wrongly.
            PermissionDeniedError: It lies outside of what the service may use.
        """
        if isinstance(storage, BucketStorage) and not self._roots.limits_buckets:
            return
        if isinstance(storage, DirectoryStorage):
            path = _path(storage)
            self._roots.require_nameable(path)
            self._roots.require_directory(path, below_roots=below_roots)
            return
        with suppress(FailedPreconditionError):
            self.open(storage)

    def _bucket(self, storage: BucketStorage, *, listed: bool) -> BucketStore:
        store, known = self._store(storage)
        if ".." in storage.prefix.split("/") or storage.prefix.strip("/") != storage.prefix:
            message = (
                f"storage.bucket.prefix is {storage.prefix!r}; write it without '..' and slashes around it"
            )
            raise invalid("storage.bucket.prefix", message)
        if "/" in storage.bucket:
            message = f"storage.bucket.bucket is {storage.bucket!r}; write what follows the name as prefix"
            raise invalid("storage.bucket.bucket", message)
        self._roots.require_bucket(storage, address=store.address, listed=listed)
        bucket = store.bucket(storage.bucket)
        return BucketStore(
            bucket, prefix=storage.prefix, known=known, create=self._buckets.create, name=storage.bucket
        )

    def _store(self, storage: BucketStorage) -> tuple[Store, KnownBuckets]:
        # Stores hold connections: one for each address, for as long as the service lives.
        key = (storage.provider, storage.endpoint_url)
        with self._lock:
            if key not in self._stores:
                self._stores[key] = self._open(storage), set()
            return self._stores[key]

    def _open(self, storage: BucketStorage) -> Store:
        """Opens a store, after checking the address if a trial named it."""
        provider, endpoint_url = storage.provider, storage.endpoint_url
        if provider is Provider.GCS and endpoint_url:
            message = f"{_ENDPOINT} is {endpoint_url!r}; leave it out for Google Cloud Storage"
            raise invalid(_ENDPOINT, message)
        if provider is Provider.S3 and endpoint_url:
            require_reachable(parse_address(endpoint_url, field=_ENDPOINT).hostname or "")
        access = self._buckets.access(provider, endpoint_url=endpoint_url, clock=self._clock)
        store = open_store(provider.value, access, extras=f"server,{provider.value}")
        if provider is Provider.AZURE and endpoint_url.rstrip("/") not in {"", store.address}:
            # A signature must not be sent to an address that somebody else named.
            raise FailedPreconditionError(
                f"{access.caller} has the key of {store.address}, not of {endpoint_url}; name that account, "
                f"or {access.credentials_help}"
            )
        return store

    def _directory(self, storage: DirectoryStorage, *, listed: bool) -> DirectoryStore:
        path = _path(storage)
        if listed:
            self._roots.require_nameable(path)
        self._roots.require_directory(path, listed=listed)
        return DirectoryStore(path, known=self._known)


def _path(storage: DirectoryStorage) -> Path:
    path = Path(storage.path)
    if not path.is_absolute() or ".." in path.parts or "\0" in storage.path:
        message = f"storage.directory.path is {storage.path!r}; it must be absolute, without '..'"
        raise invalid("storage.directory.path", message)
    return path
