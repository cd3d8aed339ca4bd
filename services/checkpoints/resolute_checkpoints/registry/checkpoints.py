"""The two-phase registry: begin, upload, commit. Only what is committed counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import AlreadyExistsError, FailedPreconditionError
from resolute_checkpoints import access
from resolute_checkpoints.blobs.base import Fault, FinishedUpload, OpenUpload, Upload, faults
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import Checkpoint, File, Owner, State, Storage
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.retention.remover import CLAIM_SECONDS, Remover
from resolute_checkpoints.store import audit, fencing, records, removals, uploads
from resolute_checkpoints.store.removals import Removal
from resolute_serving.context import Principal, actor
from resolute_serving.database.engine import Database

_FAULTS_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """What a writer says when it begins."""

    checkpoint_id: str
    owner: Owner
    storage: Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What a writer says when its files are there."""

    checkpoint_id: str
    run: int
    manifest: Manifest
    uploads: tuple[FinishedUpload, ...] = ()


class Registry:
    """Knows which checkpoints count.

    Args:
        database: Keeps them.
        stores: Opens the store of each.
        workers: Threads for looking at files.
        remover: Removes the files of what was given up.
        clock: Tells the time of changes.
    """

    def __init__(
        self,
        *,
        database: Database,
        stores: StoreFactory,
        workers: BlobWorkers,
        remover: Remover,
        clock: Clock,
    ) -> None:
        self._database = database
        self._stores = stores
        self._workers = workers
        self._remover = remover
        self._clock = clock

    async def begin(self, begin: Begin) -> Checkpoint:
        """Fixes a checkpoint's identifier and place. Safe to repeat, also after the commit.

        Raises:
            AlreadyExistsError: The identifier is taken by something else.
            IllegalTransitionError: It was given up or deleted.
            NotFoundError: Its experiment was deleted.
            RunSupersededError: The run is over.
        """
        self._stores.open(begin.storage)
        who = actor()

        def work(connection: Connection) -> Checkpoint:
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
        """Gives URLs to put files straight to the store.

        Raises:
            FailedPreconditionError: The store takes files in place.
            IllegalTransitionError: The checkpoint is not being uploaded.
        """

        def work(connection: Connection) -> Checkpoint:
            return access.require_uploading(connection, checkpoint_id, principal, lock=False)

        checkpoint = await self._database.read(work)
        store = self._stores.open(checkpoint.storage)
        given = await self._workers.run(partial(store.upload_urls, checkpoint_id, files))
        begun = [OpenUpload(upload.path, upload.upload_id) for upload in given if upload.upload_id]

        def note(connection: Connection) -> None:
            access.require_uploading(connection, checkpoint_id, principal, lock=True)
            uploads.add(connection, checkpoint_id, begun)

        if begun:
            await self._database.write(note)
        return given

    async def commit(self, commit: Commit, *, principal: Principal) -> Checkpoint:
        """Makes a checkpoint visible, once its files were seen to be there with their sizes.

        Raises:
            AlreadyExistsError: It was committed with another manifest.
            FailedPreconditionError: Files are missing or of another size.
            IllegalTransitionError: It was given up or deleted meanwhile.
            RunSupersededError: The run is over.
        """
        who = actor()
        checkpoint = await self._database.read(
            lambda connection: _committable(connection, commit, principal=principal, lock=False)
        )
        if checkpoint.state is not State.UPLOADING:
            return await self._database.read(lambda connection: _shown(connection, commit.checkpoint_id))
        found = await self._workers.run(partial(self._finish, checkpoint, commit))
        if found:
            raise _incomplete(checkpoint, found)

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
        """Gives up a checkpoint and removes its files. Safe to repeat, also for a run that is over.

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

        # Failures are left to the collector: the writer is done with it either way.
        await self._remover.execute(await self._database.write(work))

    async def get(self, checkpoint_id: str, *, principal: Principal) -> Checkpoint:
        """Gives a checkpoint.

        Raises:
            NotFoundError: There is none, or it is not committed and not the caller's.
        """
        checkpoint = await self._database.read(lambda connection: _shown(connection, checkpoint_id))
        access.require_reader(principal, checkpoint)
        return checkpoint

    async def file_page(
        self, checkpoint_id: str, *, after: int, size: int, principal: Principal
    ) -> records.FilePage:
        """Gives a part of the files of a checkpoint, by path.

        Raises:
            NotFoundError: There is no such checkpoint, or its files are gone.
        """

        def work(connection: Connection) -> records.FilePage:
            checkpoint = records.find(connection, checkpoint_id, listed=False)
            access.require_reader(principal, checkpoint)
            access.require_files(checkpoint)
            return records.file_page(connection, checkpoint_id, after=after, size=size)

        return await self._database.read(work)

    async def page(self, query: records.Query, *, after: records.Position | None, size: int) -> records.Page:
        """Gives a part of a list, newest first."""
        return await self._database.read(
            lambda connection: records.page(connection, query, after=after, size=size)
        )

    async def size_of(self, workspace: str) -> int:
        """Tells the bytes of checkpoints that were made in a workspace; what several share counts once."""
        return await self._database.read(lambda connection: records.size_of(connection, workspace))

    async def update_metadata(
        self, checkpoint_id: str, patch: dict[str, object], *, principal: Principal
    ) -> Checkpoint:
        """Replaces and removes keys of the metadata.

        Raises:
            NotFoundError: There is no such committed checkpoint.
        """
        who = actor()

        def work(connection: Connection) -> Checkpoint:
            checkpoint = records.find(connection, checkpoint_id, lock=True)
            access.require_reader(principal, checkpoint)
            access.require_editor(connection, principal, checkpoint)
            access.require_files(checkpoint)
            changed = metadata_rules.patched(checkpoint.metadata, patch)
            records.replace_metadata(connection, checkpoint_id, changed)
            now, keys = self._clock.time(), sorted(patch)
            audit.record(
                connection, action="checkpoint.update", target=checkpoint_id, actor=who, now=now, keys=keys
            )
            return _shown(connection, checkpoint_id)

        return await self._database.write(work)

    async def seal(self, trial_id: str, *, min_run: int) -> Checkpoint | None:
        """Ends the authority of runs below ``min_run`` and gives the latest checkpoint at that instant."""
        who = actor()

        def work(connection: Connection) -> Checkpoint | None:
            floor = fencing.seal(connection, trial_id, min_run)
            now = self._clock.time()
            audit.record(connection, action="trial.seal", target=trial_id, actor=who, now=now, min_run=floor)
            return records.latest(connection, trial_id)

        return await self._database.write(work)

    def _finish(self, checkpoint: Checkpoint, commit: Commit) -> Sequence[Fault]:
        store = self._stores.open(checkpoint.storage)
        store.finish_uploads(commit.checkpoint_id, commit.uploads)
        return faults(store, checkpoint.checkpoint_id, commit.manifest.placed(checkpoint.files).files)


def _shown(connection: Connection, checkpoint_id: str) -> Checkpoint:
    """Reads a checkpoint as it fits into a message."""
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
