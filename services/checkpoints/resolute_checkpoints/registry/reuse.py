"""Finds files that an earlier checkpoint of the experiment has already uploaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.engine import Connection

from resolute_checkpoints import access
from resolute_checkpoints.blobs.base import faults
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import BucketStorage, Checkpoint, File, Home
from resolute_checkpoints.store import fencing, records
from resolute_checkpoints.store.files import shared_files
from resolute_serving.context import Principal
from resolute_serving.database.engine import Database


@dataclass(frozen=True, slots=True)
class Reusable:
    """The files that need no upload, and those that may need none."""

    candidates: tuple[str, ...] = ()
    """Paths of files whose digest is wanted."""
    held: Mapping[str, Home] = field(default_factory=dict)
    """Where the bytes of files lie, by path."""


class Reuse:
    """Finds files that need no upload.

    Args:
        database: The registry.
        stores: Opens the store of each checkpoint.
        workers: Threads for inspecting files.
    """

    def __init__(self, *, database: Database, stores: StoreFactory, workers: BlobWorkers) -> None:
        self._database = database
        self._stores = stores
        self._workers = workers

    async def find(self, checkpoint_id: str, wanted: Sequence[File], *, principal: Principal) -> Reusable:
        """Finds files by size, and those with a digest by that; the latter are held for the checkpoint.

        Args:
            checkpoint_id: The checkpoint that is being written.
            wanted: Its files, with digests or without.
            principal: Who writes it.

        Raises:
            IllegalTransitionError: The checkpoint is not being uploaded.
            RunSupersededError: The run is over.
        """

        def look(connection: Connection) -> tuple[Checkpoint, set[int], Mapping[File, Home]]:
            checkpoint = access.require_uploading(connection, checkpoint_id, principal, lock=False)
            return (
                checkpoint,
                shared_files.sizes_of_latest(connection, checkpoint),
                _homes(connection, checkpoint, wanted),
            )

        checkpoint, sizes, homes = await self._database.read(look)
        held: Mapping[str, Home] = {}
        if homes:
            there = await self._workers.run(
                partial(self._still_stored, checkpoint, homes), of=checkpoint.storage
            )
            held = await self._database.write(lambda c: _hold(c, checkpoint_id, there, principal))
        unsure = (file for file in wanted if not file.digest and file.size in sizes)
        return Reusable(candidates=tuple(file.path for file in unsure), held=held)

    def _still_stored(self, checkpoint: Checkpoint, homes: Mapping[File, Home]) -> list[File]:
        """Drops files that were removed from the store by other means: they are uploaded again."""
        store = self._stores.open(checkpoint.storage)
        placed = [dataclasses.replace(file, home=home) for file, home in homes.items()]
        missing = {fault.path for fault in faults(store, checkpoint.checkpoint_id, placed)}
        return [file for file in placed if file.path not in missing]


def _homes(connection: Connection, checkpoint: Checkpoint, wanted: Sequence[File]) -> Mapping[File, Home]:
    digests = [file.digest for file in wanted if file.digest]
    if not digests or not checkpoint.owner.experiment_id:
        return {}
    homes = shared_files.find_homes(connection, checkpoint, digests)
    return {file: homes[file.digest, file.size] for file in wanted if (file.digest, file.size) in homes}


def _hold(
    connection: Connection, checkpoint_id: str, there: Sequence[File], principal: Principal
) -> Mapping[str, Home]:
    experiment_id = records.find(connection, checkpoint_id, listed=False).owner.experiment_id
    fencing.require_experiment(connection, experiment_id, lock=True)
    checkpoint = access.require_uploading(connection, checkpoint_id, principal, lock=True)
    # Some may have been deleted while the store was looked at.
    homes = set(_homes(connection, checkpoint, there).values())
    held = [file for file in there if file.home in homes]
    # In a directory the writer makes a link of its own, and fails if it comes too late.
    if isinstance(checkpoint.storage, BucketStorage):
        shared_files.hold(connection, checkpoint_id, held)
    return {file.path: file.home for file in held if file.home}
