"""The two-phase registry: begin, upload, commit. A checkpoint is visible to others once it is committed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
)
from resolute_checkpoints import access
from resolute_checkpoints.blobs.base import BlobStore, Fault, FinishedUpload, OpenUpload, Upload, faults
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.verification import Verifier
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.blobs.workspace_directories import make_workspace_directory
from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import Checkpoint, DirectoryStorage, File, Owner, State, Storage
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.retention.remover import CLAIM_SECONDS, Remover
from resolute_checkpoints.store import audit, fencing, records
from resolute_checkpoints.store.files import removals, uploads
from resolute_checkpoints.store.files.removals import Removal
from resolute_serving.context import Principal, TrialRun, actor
from resolute_serving.database.engine import Database
from resolute_serving.updates import check_etag

_FAULTS_SHOWN = 10
_IDENTIFIER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A checkpoint to begin."""

    checkpoint_id: str
    owner: Owner
    storage: Storage
    recorded: bool
    """Whether the experiment's config names that storage; a script may name another below a root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A checkpoint to commit, whose files are stored."""

    checkpoint_id: str
    run: int
    manifest: Manifest
    uploads: tuple[FinishedUpload, ...] = ()


class Registry:
    """Registers checkpoints.

    Args:
        database: The service's database.
        stores: Opens the store of each checkpoint.
        workers: Threads for inspecting files.
        verifier: Verifies files by their digests.
        remover: Removes the files of aborted checkpoints.
        clock: Clock for the times of changes.
        cluster_id: UUID of the cluster, which no checkpoint may have.
    """

    def __init__(
        self,
        *,
        database: Database,
        stores: StoreFactory,
        workers: BlobWorkers,
        verifier: Verifier,
        remover: Remover,
        clock: Clock,
        cluster_id: str,
    ) -> None:
        self._database = database
        self._stores = stores
        self._workers = workers
        self._verifier = verifier
        self._remover = remover
        self._clock = clock
        self._cluster_id = cluster_id

    async def begin(self, begin: Begin) -> Checkpoint:
        """Registers a checkpoint's identifier and storage. Safe to repeat, also after the commit.

        Raises:
            AlreadyExistsError: The identifier is taken by something else.
            IllegalTransitionError: It was aborted or deleted.
            NotFoundError: Its experiment was deleted.
            PermissionDeniedError: The storage is not the run's.
            RunSupersededError: The run is over.
            UnavailableError: The storage is full.
        """
        who = actor()

        def is_new(connection: Connection) -> bool:
            fencing.require_experiment(connection, begin.owner.experiment_id, lock=False)
            fencing.require_run(connection, begin.owner.trial_id, begin.owner.run, lock=False)
            return not records.existing(connection, [begin.checkpoint_id])

        parts: frozenset[str] = frozenset()
        if await self._database.read(is_new):
            parts = await self._workers.run(partial(self._require_place, begin), of=begin.storage)

        def work(connection: Connection) -> Checkpoint:
            if self._cluster_id in parts or records.existing(connection, sorted(parts)):
                raise PermissionDeniedError(
                    "checkpoints may not be stored within another checkpoint, or among the cluster's own "
                    "files; name another place"
                )
            fencing.require_experiment(connection, begin.owner.experiment_id, lock=True)
            fencing.require_run(connection, begin.owner.trial_id, begin.owner.run, lock=True)
            fresh = Checkpoint(
                checkpoint_id=begin.checkpoint_id,
                state=State.UPLOADING,
                owner=begin.owner,
                storage=begin.storage,
                create_time=self._clock.time(),
            )
            if records.insert(connection, fresh):
                audit.record(
                    connection,
                    action="checkpoint.begin",
                    target=fresh.checkpoint_id,
                    actor=who,
                    now=fresh.create_time,
                )
                return fresh
            return _same_beginning(records.find(connection, begin.checkpoint_id), begin)

        return await self._database.write(work)

    async def upload_urls(
        self, checkpoint_id: str, files: Sequence[File], *, principal: Principal
    ) -> Sequence[Upload]:
        """Returns URLs to upload files to directly.

        Raises:
            FailedPreconditionError: The store takes files in place.
            IllegalTransitionError: The checkpoint is not being uploaded.
        """

        def work(connection: Connection) -> Checkpoint:
            return access.require_uploading(connection, checkpoint_id, principal, lock=False)

        checkpoint = await self._database.read(work)
        storage = checkpoint.storage
        given = await self._workers.run(
            lambda: self._stores.open(storage).upload_urls(checkpoint_id, files), of=storage
        )
        begun = [OpenUpload(upload.path, upload.upload_id) for upload in given if upload.upload_id]

        def note(connection: Connection) -> None:
            access.require_uploading(connection, checkpoint_id, principal, lock=True)
            uploads.add(connection, checkpoint_id, begun)

        if begun:
            await self._database.write(note)
        return given

    async def commit_owner(self, checkpoint_id: str, *, run: int, principal: Principal) -> str:
        """Returns the trial of a checkpoint to commit, or the checkpoint's UUID if it has no trial.

        Raises:
            IllegalTransitionError: It is not being uploaded, and never was committed.
            NotFoundError: There is no such checkpoint.
            PermissionDeniedError: It is another trial's, or a later run's.
            RunSupersededError: The run is over.
        """

        def work(connection: Connection) -> Checkpoint:
            checkpoint = records.find(connection, checkpoint_id, listed=False)
            access.require_author(principal, checkpoint, run=run)
            if checkpoint.state.was_committed:
                # The answer to an equal commit got lost, perhaps.
                return checkpoint
            return access.require_uploading(connection, checkpoint_id, principal, lock=False)

        return (await self._database.read(work)).owner.trial_id or checkpoint_id

    async def commit(self, commit: Commit, *, principal: Principal) -> Checkpoint:
        """Makes a checkpoint visible, after checking that its files are stored with their sizes and digests.

        Raises:
            AlreadyExistsError: It was committed with another manifest.
            FailedPreconditionError: Files are missing, or of another size or content.
            IllegalTransitionError: It was aborted or deleted meanwhile.
            RunSupersededError: The run is over.
        """
        who = actor()
        checkpoint = await self._database.read(
            lambda connection: _committable(connection, commit, principal=principal, lock=False)
        )
        if checkpoint.state is not State.UPLOADING:
            return await self._database.read(lambda connection: _shown(connection, commit.checkpoint_id))
        store, placed, faults = await self._workers.run(
            partial(self._finish, checkpoint, commit), of=checkpoint.storage
        )
        faults = faults or await self._verifier.damaged(
            store,
            checkpoint.checkpoint_id,
            placed,
            storage=checkpoint.storage,
            caller=f"workspace {principal.workspace}" if isinstance(principal, TrialRun) else who,
        )
        if faults:
            raise _incomplete(checkpoint, faults)

        def work(connection: Connection) -> Checkpoint:
            fencing.require_experiment(connection, checkpoint.owner.experiment_id, lock=True)
            current = _committable(connection, commit, principal=principal, lock=True)
            if current.state is not State.UPLOADING:
                return _shown(connection, commit.checkpoint_id)
            now = self._clock.time()
            manifest = commit.manifest.placed(current.files)
            records.complete(connection, commit.checkpoint_id, manifest, now=now)
            finished = {upload.upload_id for upload in commit.uploads}
            if uploads.remove_finished(connection, commit.checkpoint_id, finished):
                removals.mark_uploads_for_removal(connection, commit.checkpoint_id, now=now)
            audit.record(
                connection, action="checkpoint.commit", target=commit.checkpoint_id, actor=who, now=now
            )
            return _shown(connection, commit.checkpoint_id)

        return await self._database.write(work)

    async def abort(self, checkpoint_id: str, *, run: int, principal: Principal) -> None:
        """Aborts a checkpoint and removes its files. Safe to repeat, also for a run that is over.

        Raises:
            IllegalTransitionError: It is committed.
        """
        who = actor()

        def work(connection: Connection) -> list[Removal]:
            checkpoint = records.find(connection, checkpoint_id, lock=True)
            access.require_author(principal, checkpoint, run=run)
            if checkpoint.state.was_committed:
                raise checkpoint.cannot_become(State.ABORTED, remedy="delete it instead")
            now = self._clock.time()
            removals.mark_for_removal(connection, checkpoint_id, state=State.ABORTED, now=now)
            audit.record(connection, action="checkpoint.abort", target=checkpoint_id, actor=who, now=now)
            return removals.claim(connection, [checkpoint_id], until=now + CLAIM_SECONDS)

        # Failures are left to the collector: for the writer the checkpoint is aborted either way.
        await self._remover.execute(await self._database.write(work))

    async def get(self, checkpoint_id: str, *, principal: Principal) -> Checkpoint:
        """Returns a checkpoint.

        Raises:
            NotFoundError: There is none, or it is not committed and not the caller's.
        """
        checkpoint = await self._database.read(lambda connection: _shown(connection, checkpoint_id))
        access.require_reader(principal, checkpoint)
        return checkpoint

    async def file_page(
        self, checkpoint_id: str, path_prefix: str, request: Any, *, principal: Principal
    ) -> tuple[list[File], str]:
        """Returns one page of the files of a checkpoint, and the token of the next.

        Raises:
            NotFoundError: There is no such checkpoint, or its files are gone.
        """

        def work(connection: Connection) -> tuple[list[File], str]:
            checkpoint = records.find(connection, checkpoint_id, listed=False)
            access.require_reader(principal, checkpoint)
            access.require_files(checkpoint)
            return records.file_page(connection, checkpoint_id, path_prefix, request)

        return await self._database.read(work)

    async def storage_refusal(self, storage: Storage, *, below_roots: bool) -> str:
        """Returns why no config may name a storage; empty if one may.

        Args:
            storage: The storage.
            below_roots: Whether a directory must lie below a root although the operator lists none.
        """
        try:
            await self._workers.run(partial(self._stores.admit, storage, below_roots=below_roots), of=storage)
        except (InvalidArgumentError, PermissionDeniedError) as error:
            return str(error)
        return ""

    async def make_workspace_directory(self, directory: str, *, workspace_id: int) -> str:
        """Makes the directory of a workspace in one for checkpoints; see the function of this name."""
        return await self._workers.run(
            partial(
                make_workspace_directory,
                self._stores,
                directory,
                cluster_id=self._cluster_id,
                workspace_id=workspace_id,
            ),
            of=DirectoryStorage(directory),
        )

    async def update_metadata(
        self, checkpoint_id: str, patch: dict[str, object], *, etag: str = "", principal: Principal
    ) -> Checkpoint:
        """Replaces and removes keys of the metadata.

        Args:
            checkpoint_id: The checkpoint.
            patch: Keys to replace; None as a value removes one.
            etag: What the caller has seen; empty to update whatever there is.
            principal: Who calls.

        Raises:
            ConflictError: The checkpoint has changed since the caller read it.
            NotFoundError: There is no such committed checkpoint.
        """
        who = actor()

        def work(connection: Connection) -> Checkpoint:
            checkpoint = records.find(connection, checkpoint_id, lock=True)
            access.require_reader(principal, checkpoint)
            access.require_editor(connection, principal, checkpoint)
            access.require_files(checkpoint)
            check_etag(etag, revision=checkpoint.revision, resource=str(checkpoint))
            changed = metadata_rules.patched(checkpoint.metadata, patch)
            records.replace_metadata(connection, checkpoint_id, changed)
            now, keys = self._clock.time(), sorted(patch)
            audit.record(
                connection, action="checkpoint.update", target=checkpoint_id, actor=who, now=now, keys=keys
            )
            return _shown(connection, checkpoint_id)

        return await self._database.write(work)

    async def fence(self, trial_id: str, *, min_run: int, most_steps: int | None = None) -> Checkpoint | None:
        """Supersedes runs of a trial.

        Args:
            trial_id: The trial.
            min_run: The first run that is not superseded.
            most_steps: The trial goes back: what superseded runs wrote after so many steps does not count.

        Returns:
            The latest checkpoint at that instant.
        """
        who = actor()

        def work(connection: Connection) -> Checkpoint | None:
            fence, now = fencing.fence(connection, trial_id, min_run), self._clock.time()
            if most_steps is not None:
                records.leave_behind(connection, trial_id, below_run=min_run, most_steps=most_steps)
            audit.record(connection, action="trial.fence", target=trial_id, actor=who, now=now, min_run=fence)
            return records.latest(connection, trial_id)

        return await self._database.write(work)

    def _require_place(self, begin: Begin) -> frozenset[str]:
        """Checks a checkpoint's storage; returns the parts of its place that may be identifiers."""
        if begin.checkpoint_id == self._cluster_id:
            raise AlreadyExistsError(
                f"checkpoint {begin.checkpoint_id} cannot be begun: the identifier belongs to the cluster; "
                "choose another one"
            )
        self._stores.open(begin.storage, listed=not begin.recorded).require_free(begin.checkpoint_id)
        storage = begin.storage
        path = os.path.realpath(storage.path) if isinstance(storage, DirectoryStorage) else storage.prefix
        return frozenset(part for part in path.split("/") if _IDENTIFIER.fullmatch(part))

    def _finish(
        self, checkpoint: Checkpoint, commit: Commit
    ) -> tuple[BlobStore, Sequence[File], Sequence[Fault]]:
        """Completes uploads and checks files; returns their homes, the files, and the errors."""
        store = self._stores.open(checkpoint.storage)
        store.finish_uploads(commit.checkpoint_id, commit.uploads)
        placed = commit.manifest.placed(checkpoint.files).files
        return store, placed, faults(store, checkpoint.checkpoint_id, placed)


def _shown(connection: Connection, checkpoint_id: str) -> Checkpoint:
    """Reads a checkpoint with as many files as fit into a message."""
    return records.find(connection, checkpoint_id, most_bytes=records.MESSAGE_BYTES)


def _same_beginning(existing: Checkpoint, begin: Begin) -> Checkpoint:
    if existing.owner != begin.owner or existing.storage != begin.storage:
        raise AlreadyExistsError(
            f"{existing} was begun by another writer or for another place; choose another identifier",
            resource=str(existing),
        )
    if existing.state in {State.ABORTED, State.DELETING, State.DELETED}:
        raise existing.cannot_become(State.UPLOADING, remedy="begin another one with a new identifier")
    return existing


def _committable(connection: Connection, commit: Commit, *, principal: Principal, lock: bool) -> Checkpoint:
    """Reads the checkpoint if this commit may be made, or was made before."""
    checkpoint = records.find(connection, commit.checkpoint_id, lock=lock)
    access.require_author(principal, checkpoint, run=commit.run)
    if checkpoint.state.was_committed:
        if checkpoint.manifest_digest == commit.manifest.digest:
            return checkpoint
        raise AlreadyExistsError(
            f"{checkpoint} was committed before with other files or metadata; begin another one",
            resource=str(checkpoint),
        )
    fencing.require_run(connection, checkpoint.owner.trial_id, commit.run, lock=lock)
    if checkpoint.state is not State.UPLOADING:
        raise checkpoint.cannot_become(State.COMPLETED, remedy="begin another one with a new identifier")
    return checkpoint


def _incomplete(checkpoint: Checkpoint, faults: Sequence[Fault]) -> FailedPreconditionError:
    shown = "; ".join(str(fault) for fault in faults[:_FAULTS_SHOWN])
    more = f"; and {len(faults) - _FAULTS_SHOWN} more" if len(faults) > _FAULTS_SHOWN else ""
    return FailedPreconditionError(
        f"{checkpoint} is not complete: {shown}{more}. Upload these files and commit again, or abort",
        resource=str(checkpoint),
    )
