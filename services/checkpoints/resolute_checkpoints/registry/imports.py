"""Imports checkpoints and models of other clusters with their original data. Existing ones stay unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import AlreadyExistsError, DataLossError
from resolute_checkpoints import access
from resolute_checkpoints.blobs.base import faults
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import Checkpoint
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.domain.model import Author, Model, ModelKey, NewModel, NewVersion
from resolute_checkpoints.store import audit, fencing, model_versions, models, records
from resolute_serving.context import actor
from resolute_serving.database.engine import Database

_MOST_FAULTS = 3
"""Files that an error names at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCheckpoint:
    """A checkpoint as it was on another cluster."""

    checkpoint: Checkpoint
    """Inherited where its files lie in a storage of that cluster; else they are a copy for this one."""
    manifest: Manifest
    """Without files where these were deleted there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedVersion:
    """A version of a model as it was on another cluster."""

    number: int
    new: NewVersion
    author: Author
    create_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """A model as it was on another cluster."""

    model_id: str
    new: NewModel
    author: Author
    archived: bool
    create_time: float
    update_time: float
    versions: tuple[ImportedVersion, ...]


class Imports:
    """Imports checkpoints and models of other clusters.

    Args:
        database: The registry.
        stores: Checks which storages may be named.
        workers: Threads for inspecting directories.
        clock: Clock for the time of the import.
    """

    def __init__(
        self, *, database: Database, stores: StoreFactory, workers: BlobWorkers, clock: Clock
    ) -> None:
        self._database = database
        self._stores = stores
        self._workers = workers
        self._clock = clock

    async def checkpoints(self, imported: Sequence[ImportedCheckpoint]) -> int:
        """Registers checkpoints; returns how many are new.

        Raises:
            DataLossError: Files of a copy are missing, or have another size.
            NotFoundError: An experiment was deleted here.
            PermissionDeniedError: A storage lies outside of what the service may use.
        """
        for storage in dict.fromkeys(item.checkpoint.storage for item in imported):
            await self._workers.run(partial(self._stores.admit, storage), of=storage)
        for item in imported:
            if not item.checkpoint.inherited:
                await self._workers.run(partial(self._require_files, item), of=item.checkpoint.storage)
        who = actor()

        def work(connection: Connection) -> int:
            known = set(records.existing(connection, [item.checkpoint.checkpoint_id for item in imported]))
            new = [item for item in imported if item.checkpoint.checkpoint_id not in known]
            counts = Counter(item.checkpoint.owner.experiment_id for item in new)
            for experiment_id, count in sorted(counts.items()):
                fencing.require_experiment(connection, experiment_id, lock=True)
                audit.record(
                    connection,
                    action="checkpoint.import",
                    target=experiment_id,
                    actor=who,
                    now=self._clock.time(),
                    count=count,
                )
            records.insert_committed(connection, [(item.checkpoint, item.manifest) for item in new])
            return len(new)

        return await self._database.write(work)

    def _require_files(self, imported: ImportedCheckpoint) -> None:
        checkpoint = imported.checkpoint
        store = self._stores.open(checkpoint.storage)
        found = faults(store, checkpoint.checkpoint_id, imported.manifest.files)
        if found:
            raise DataLossError(
                f"the copy of {checkpoint} is not whole: {', '.join(map(str, found[:_MOST_FAULTS]))}; "
                "import it again, where this service reaches its storage under the same path",
                resource=str(checkpoint),
            )

    async def model(self, imported: ImportedModel) -> Model:
        """Takes over a model with those of its versions that are not there.

        Raises:
            AlreadyExistsError: Its name is another model's.
            NotFoundError: A checkpoint is not registered.
        """
        who = actor()

        def work(connection: Connection) -> Model:
            key = ModelKey(model_id=imported.model_id)
            is_new = not models.exists(connection, key)
            if is_new:
                _insert_model(connection, imported)
            model = models.find(connection, key, lock=True)
            known = model_versions.numbers(connection, model)
            new = [version for version in imported.versions if version.number not in known]
            for version in new:
                access.require_files(
                    records.find(connection, version.new.checkpoint_id, lock=True, listed=False)
                )
                model_versions.insert(
                    connection,
                    model,
                    version.number,
                    version.new,
                    author=version.author,
                    now=version.create_time,
                )
            if is_new or new:
                audit.record(
                    connection,
                    action="model.import",
                    target=imported.model_id,
                    actor=who,
                    now=self._clock.time(),
                    count=len(new),
                )
            models.raise_next_version(connection, model, [earlier.number for earlier in imported.versions])
            return models.find(connection, key)

        return await self._database.write(work)


def _insert_model(connection: Connection, imported: ImportedModel) -> None:
    new = imported.new
    if models.exists(connection, ModelKey(name=new.name)):
        raise AlreadyExistsError(
            f"there is another model {new.name!r} already; rename one of them, and import again",
            resource=f"model {new.name!r}",
        )
    models.insert(connection, imported.model_id, new, author=imported.author, now=imported.create_time)
    model = models.find(connection, ModelKey(model_id=imported.model_id))
    values = {"archived": imported.archived}
    models.update(connection, model, values, now=imported.update_time, revised=False)
