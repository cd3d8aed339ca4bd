"""The registry over a real database and a real directory, with a clock that tests move."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support.clocks import ManualClock

from resolute.api.checkpoints.v1.checkpoints_service_pb2 import ListCheckpointsRequest
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.roots import EVERY_BUCKET, Roots
from resolute_checkpoints.blobs.verification import Verifier
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_checkpoints.domain.checkpoint import Checkpoint, DirectoryStorage, File, Owner, State
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.media.contents import Contents
from resolute_checkpoints.media.removal import Removal
from resolute_checkpoints.registry.checkpoints import Begin, Commit, Registry
from resolute_checkpoints.registry.downloads import Downloads
from resolute_checkpoints.registry.imports import Imports
from resolute_checkpoints.retention.collector import Collector
from resolute_checkpoints.retention.deletion import Deletions
from resolute_checkpoints.retention.remover import Remover
from resolute_checkpoints.service import CheckpointsService
from resolute_checkpoints.settings import CheckpointSettings
from resolute_checkpoints.store import records, usage
from resolute_serving.context import Principal, ServiceAccount, TrialRun
from resolute_serving.database.engine import Database
from resolute_serving.server.service import Environment

SERVICE = ServiceAccount("experiments")
EXPERIMENT = str(uuid.UUID(int=100))
TRIAL = str(uuid.UUID(int=200))
VISION = 5
"""Id of the workspace "vision"."""
CONTENT = {"model.pt": b"weights", "d/optimizer.pt": b"moments"}


def _create_for_any_bucket(environment: Environment) -> CheckpointsService:
    settings = CheckpointSettings.from_environment(os.environ)
    return CheckpointsService(environment, settings=replace(settings, roots=Roots(buckets=(EVERY_BUCKET,))))


ANY_BUCKET = replace(BLUEPRINT, create=_create_for_any_bucket)
"""The service with an operator who lets scripts name any bucket."""


def token(
    *,
    trial_id: str = TRIAL,
    run: int = 1,
    experiment_id: str = EXPERIMENT,
    workspace: str = "vision",
) -> TrialRun:
    """Whom a trial's processes are."""
    return TrialRun(
        trial_id=trial_id, run=run, experiment_id=experiment_id, allocation_id="a", workspace=workspace
    )


def new_id() -> str:
    return str(uuid.uuid4())


@dataclass
class RegistryHarness:
    """Everything of the service below its handlers."""

    root: Path
    clock: ManualClock
    database: Database
    registry: Registry
    deletions: Deletions
    downloads: Downloads
    collector: Collector
    remover: Remover
    imports: Imports
    contents: Contents

    def place(self, checkpoint_id: str) -> Path:
        """Where the files of a checkpoint lie."""
        return self.root / checkpoint_id

    def write(self, checkpoint_id: str, content: Mapping[str, bytes]) -> list[File]:
        """Puts files where a trial would, and lists them."""
        for path, data in content.items():
            target = self.place(checkpoint_id) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return [File(path, len(data)) for path, data in content.items()]

    async def page(
        self, wanted: records.CheckpointFilter, request: ListCheckpointsRequest
    ) -> tuple[list[Checkpoint], str]:
        """One page of a list, and the token of the next."""
        return await self.database.read(lambda connection: records.page(connection, wanted, request))

    async def storage_usage(self, workspace_id: int) -> int:
        """Bytes of a workspace's checkpoints."""
        return await self.database.read(lambda connection: usage.of_workspace(connection, workspace_id))

    async def begin(
        self,
        checkpoint_id: str | None = None,
        *,
        trial_id: str = TRIAL,
        run: int = 1,
        experiment_id: str = EXPERIMENT,
        workspace: str = "vision",
        workspace_id: int | None = VISION,
    ) -> str:
        """Begins a checkpoint."""
        owner = Owner(
            trial_id=trial_id,
            experiment_id=experiment_id,
            run=run,
            workspace=workspace,
            workspace_id=workspace_id,
        )
        storage = DirectoryStorage(str(self.root))
        begun = await self.registry.begin(
            Begin(checkpoint_id=checkpoint_id or new_id(), owner=owner, storage=storage, recorded=True)
        )
        return begun.checkpoint_id

    async def commit(
        self,
        checkpoint_id: str,
        content: Mapping[str, bytes] = CONTENT,
        *,
        steps: int = 1,
        run: int = 1,
        metadata: Mapping[str, Any] | None = None,
        principal: Principal = SERVICE,
    ) -> Checkpoint:
        """Commits a checkpoint whose files were written before."""
        files = [File(path, len(data)) for path, data in content.items()]
        manifest = Manifest.checked(files, {"steps_completed": steps, **(metadata or {})})
        return await self.registry.commit(
            Commit(checkpoint_id=checkpoint_id, run=run, manifest=manifest), principal=principal
        )

    async def store(
        self,
        content: Mapping[str, bytes] = CONTENT,
        *,
        steps: int = 1,
        run: int = 1,
        trial_id: str = TRIAL,
        experiment_id: str = EXPERIMENT,
        workspace: str = "vision",
        workspace_id: int | None = VISION,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Begins, writes and commits a checkpoint."""
        checkpoint_id = await self.begin(
            trial_id=trial_id,
            run=run,
            experiment_id=experiment_id,
            workspace=workspace,
            workspace_id=workspace_id,
        )
        self.write(checkpoint_id, content)
        await self.commit(checkpoint_id, content, steps=steps, run=run, metadata=metadata)
        return checkpoint_id

    async def state(self, checkpoint_id: str) -> State:
        """The state of a checkpoint, as the platform sees it."""
        return (await self.registry.get(checkpoint_id, principal=SERVICE)).state

    async def listed(self, *states: State, trial_id: str = TRIAL, experiment_id: str = "") -> list[str]:
        """Identifiers of a list."""
        wanted = records.CheckpointFilter(
            states=states or (State.COMPLETED, State.PARTIALLY_DELETED),
            trial_ids=() if experiment_id else [trial_id],
            experiment_ids=[experiment_id] if experiment_id else (),
        )
        found, _ = await self.page(wanted, ListCheckpointsRequest(page_size=1000))
        return [checkpoint.checkpoint_id for checkpoint in found]


@asynccontextmanager
async def registry_harness(
    database_url: str, root: Path, *, clock: ManualClock | None = None, stores: StoreFactory | None = None
) -> AsyncIterator[RegistryHarness]:
    """Puts the parts together, and takes them apart."""
    clock = clock or ManualClock()
    database = Database(database_url, name="checkpoints")
    stores = stores or StoreFactory()
    workers, removal_workers = BlobWorkers(name="blobs", threads=4), BlobWorkers(name="removal", threads=2)
    contents = Contents(stores=stores, workers=workers, cluster_id="cluster")
    remover = Remover(database=database, stores=stores, workers=removal_workers, clock=clock)
    try:
        yield RegistryHarness(
            root=root,
            clock=clock,
            database=database,
            registry=Registry(
                database=database,
                stores=stores,
                workers=workers,
                verifier=Verifier(workers),
                remover=remover,
                clock=clock,
                cluster_id="cluster",
            ),
            deletions=Deletions(
                database=database,
                remover=remover,
                clock=clock,
                cluster_id="cluster",
                media=Removal(database, contents, clock=clock),
            ),
            contents=contents,
            downloads=Downloads(
                database=database, stores=stores, workers=workers, clock=clock, url_seconds=600.0
            ),
            collector=Collector(
                database=database, remover=remover, clock=clock, settings=CheckpointSettings()
            ),
            remover=remover,
            imports=Imports(database=database, stores=stores, workers=workers, clock=clock),
        )
    finally:
        workers.close()
        removal_workers.close()
        database.close()
