"""Deletes checkpoints: they are marked durably, then files are removed, then rows. Failures are retried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import ResoluteError, UnavailableError
from resolute_checkpoints import access
from resolute_checkpoints.domain.checkpoint import Checkpoint, State, Storage
from resolute_checkpoints.domain.globs import compile_globs
from resolute_checkpoints.media.removal import Removal as MediaRemoval
from resolute_checkpoints.retention.remover import CLAIM_SECONDS, Remover
from resolute_checkpoints.store import audit, fencing, pins, records, rows
from resolute_checkpoints.store.files import inheritance, removals
from resolute_checkpoints.store.files.removals import Removal
from resolute_serving.context import Principal, TrialRun, actor
from resolute_serving.database.engine import Database

_BATCH = 100


class Deletions:
    """Deletes checkpoints at the request of users, of trials and of the lifecycle of experiments.

    Args:
        database: The registry.
        remover: Carries out removals.
        clock: Clock for the times of changes.
        cluster_id: UUID of the cluster, the prefix of the paths of files that belong to no checkpoint.
        media: Removes the media of trials.
    """

    def __init__(
        self, *, database: Database, remover: Remover, clock: Clock, cluster_id: str, media: MediaRemoval
    ) -> None:
        self._media = media
        self._cluster_id = cluster_id
        self._database = database
        self._remover = remover
        self._clock = clock

    async def delete(self, ids: Sequence[str], globs: Sequence[str], *, principal: Principal) -> None:
        """Deletes checkpoints, or only their files that match a pattern. All are marked, or none.

        Files that cannot be removed now are left to the collector: a trial that tidies up must not fail for
        a store that is slow to answer, and the checkpoints show that they are being deleted.

        Raises:
            FailedPreconditionError: One is pinned, a version of a model, or inherited.
            NotFoundError: One does not exist or is not committed.
            PermissionDeniedError: One belongs to another experiment than the trial that calls.
            RunSupersededError: The run that calls is over.
        """
        matches = compile_globs(globs) if globs else None
        who = actor()

        def mark(connection: Connection) -> list[Removal]:
            now = self._clock.time()
            heads = rows.load(connection, ids, listed=False).values()
            fencing.lock_experiments(connection, {head.owner.experiment_id for head in heads})
            checkpoints = rows.load(connection, ids, lock=True)
            for checkpoint_id in ids:
                checkpoint = checkpoints.get(checkpoint_id)
                if checkpoint is None or not checkpoint.state.was_committed:
                    raise records.missing(checkpoint_id)
                access.require_editor(connection, principal, checkpoint)
            pins.require_deletable(connection, checkpoints.values())
            # A trial that tidies up must not fail for it: the files of what it deletes wait to be taken over.
            if not isinstance(principal, TrialRun):
                inheritance.require_owned(checkpoints.values())
            for checkpoint in checkpoints.values():
                if _mark(connection, checkpoint, matches, now=now):
                    audit.record(
                        connection,
                        action="checkpoint.delete",
                        target=checkpoint.checkpoint_id,
                        actor=who,
                        now=now,
                        globs=list(globs),
                    )
            return removals.claim(connection, list(checkpoints), until=now + CLAIM_SECONDS)

        await self._remover.execute(await self._database.write(mark))

    async def pin(self, ids: Sequence[str], *, pinned: bool) -> None:
        """Pins or unpins checkpoints: all or none. Idempotent.

        Raises:
            NotFoundError: One does not exist, or its files are gone.
        """
        who = actor()

        def work(connection: Connection) -> None:
            checkpoints = rows.load(connection, ids, lock=True, listed=False)
            for checkpoint_id in ids:
                if checkpoint_id not in checkpoints:
                    raise records.missing(checkpoint_id)
                access.require_files(checkpoints[checkpoint_id])
            pins.pin(connection, ids, pinned=pinned)
            action, now = "checkpoint.pin" if pinned else "checkpoint.unpin", self._clock.time()
            for checkpoint_id in ids:
                audit.record(connection, action=action, target=checkpoint_id, actor=who, now=now)

        await self._database.write(work)

    async def delete_experiment(self, experiment_id: str) -> None:
        """Removes all checkpoints of an experiment and leaves a tombstone. Idempotent.

        Raises:
            FailedPreconditionError: Some of its checkpoints are inherited.
            UnavailableError: Some files could not be removed yet; they are marked and removed later. Media
                are removed when this is called again.
        """
        who = actor()

        def bury(connection: Connection) -> None:
            inheritance.require_owned_experiment(connection, experiment_id)
            now = self._clock.time()
            fencing.mark_experiment_deleted(connection, experiment_id, now=now)
            removals.mark_experiment_for_removal(connection, experiment_id, now=now)
            audit.record(connection, action="experiment.delete", target=experiment_id, actor=who, now=now)

        await self._database.write(bury)
        await self._media.delete_experiment(experiment_id)
        failures: list[ResoluteError] = []
        while claimed := await self._database.write(lambda c: self._claim(c, experiment_id)):
            failures += await self._remover.execute(claimed)
        if failures:
            raise UnavailableError(
                f"experiment {experiment_id} is marked, and the files of {len(failures)} checkpoints could "
                f"not be removed yet; this is repeated until it succeeds. The first failure: {failures[0]}"
            ) from failures[0]

    async def delete_tensorboard_files(self, storage: Storage, experiment_number: int) -> None:
        """Removes the TensorBoard files that trials of an experiment on this cluster wrote. Safe to repeat.

        Raises:
            FailedPreconditionError: They are reached through a link, or the store refuses the service.
            UnavailableError: The store cannot be reached.
        """
        await self._remover.remove_others(
            storage, f"{self._cluster_id}/tensorboard/experiment/{experiment_number}"
        )

    def _claim(self, connection: Connection, experiment_id: str) -> list[Removal]:
        now = self._clock.time()
        return removals.claim_due(
            connection, now=now, until=now + CLAIM_SECONDS, limit=_BATCH, experiment_id=experiment_id
        )


def _mark(
    connection: Connection, checkpoint: Checkpoint, matches: Callable[[str], bool] | None, *, now: float
) -> bool:
    """Marks checkpoints or files for removal; returns whether there were any."""
    if checkpoint.state is State.DELETED:
        return False
    if matches is None or checkpoint.state is State.DELETING:
        removals.mark_for_removal(connection, checkpoint.checkpoint_id, state=State.DELETING, now=now)
        return True
    paths = _chosen(checkpoint, matches)
    if not paths:
        return False
    if all(file.is_directory or file.path in paths for file in checkpoint.files):
        removals.mark_for_removal(connection, checkpoint.checkpoint_id, state=State.DELETING, now=now)
    else:
        removals.mark_files_for_removal(connection, checkpoint, sorted(paths), now=now)
    return True


def _chosen(checkpoint: Checkpoint, matches: Callable[[str], bool]) -> set[str]:
    """Returns the matching files, and the matching directories that would be empty."""
    files = {file.path for file in checkpoint.files if not file.is_directory and matches(file.path)}
    kept = [file.path for file in checkpoint.files if not file.is_directory and file.path not in files]
    needed = {f"{folder}/" for path in kept for folder in PurePosixPath(path).parents}
    directories = {
        file.path
        for file in checkpoint.files
        if file.is_directory and matches(file.path) and file.path not in needed
    }
    return files | directories
