"""Contents of media in the storage of an experiment: one file for each digest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from resolute.errors import (
    DataLossError,
    FailedPreconditionError,
    PermissionDeniedError,
    QuotaError,
    UnavailableError,
)
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import Storage
from resolute_checkpoints.media.values import Item


class Contents:
    """Writes, reads and removes contents.

    Args:
        stores: Opens storages.
        workers: Threads for the work on storages.
        cluster_id: UUID of the cluster, the prefix of the paths of files that belong to no checkpoint.
    """

    def __init__(self, *, stores: StoreFactory, workers: BlobWorkers, cluster_id: str) -> None:
        self._stores = stores
        self._workers = workers
        self._cluster_id = cluster_id

    async def write(
        self, storage: Storage, experiment_id: str, items: Sequence[Item], *, listed: bool
    ) -> None:
        """Writes the contents of some media; those that are there already are written again.

        Args:
            storage: Where to.
            experiment_id: The experiment.
            items: The media.
            listed: Whether the storage must be below a root: a script named it, not a config.

        Raises:
            FailedPreconditionError: They cannot be stored now. A sender tries again, and does not hold the
                slots of an ended run for it.
        """
        directory = self._directory(experiment_id)

        def work() -> None:
            store = self._stores.open(storage, listed=listed)
            for item in items:
                store.write_other(directory, item.digest, item.content)

        try:
            await self._workers.run(work, of=storage)
        except (UnavailableError, QuotaError, PermissionDeniedError) as error:
            raise FailedPreconditionError(f"media cannot be stored now: {error}") from error

    async def read(self, storage: Storage, experiment_id: str, digest: str, *, size: int) -> bytes:
        """Reads a content.

        Raises:
            DataLossError: It is gone, or not what was logged.
            UnavailableError: The store does not answer.
        """
        directory = self._directory(experiment_id)

        def work() -> bytes:
            with self._stores.open(storage).open(directory, digest, offset=0) as stream:
                content = stream.read(size)
            if hashlib.sha256(content).hexdigest() != digest:
                raise DataLossError(f"the file {digest} is not what was logged; restore it from a copy")
            return content

        return await self._workers.run(work, of=storage)

    async def remove(self, storage: Storage, experiment_id: str, digests: Sequence[str]) -> None:
        """Removes some contents. Safe to repeat."""
        directory = self._directory(experiment_id)
        await self._workers.run(
            lambda: self._stores.open(storage).remove_files(directory, digests), of=storage
        )

    async def remove_all(self, storage: Storage, experiment_id: str) -> None:
        """Removes every content of an experiment. Safe to repeat.

        Raises:
            UnavailableError: The store does not answer.
        """
        directory = self._directory(experiment_id)
        await self._workers.run(lambda: self._stores.open(storage).remove_others(directory), of=storage)

    def _directory(self, experiment_id: str) -> str:
        return f"{self._cluster_id}/media/{experiment_id}"
