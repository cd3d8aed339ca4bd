"""From where checkpoints are said to lie to the store that reaches them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from resolute.errors import InvalidArgumentError, PermissionDeniedError, UnimplementedError, Violation
from resolute_checkpoints.blobs.base import BlobStore
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.checkpoint import BucketStorage, DirectoryStorage, Storage


class Stores:
    """Opens stores.

    Args:
        roots: Directories below which directory stores may lie; empty allows every directory.
    """

    def __init__(self, roots: Sequence[Path] = ()) -> None:
        self._roots = tuple(roots)

    def open(self, storage: Storage) -> BlobStore:
        """Gives the store of some storage.

        Raises:
            InvalidArgumentError: The storage is described wrongly.
            PermissionDeniedError: It lies outside of the roots.
            UnimplementedError: There is no store of this kind.
        """
        if isinstance(storage, BucketStorage):
            raise UnimplementedError(
                f"bucket {storage.bucket!r}: this version keeps checkpoints in directories only; "
                "use checkpoint_storage of type shared_fs or directory"
            )
        return self._directory(storage)

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
