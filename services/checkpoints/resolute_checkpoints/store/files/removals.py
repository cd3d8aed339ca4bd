"""Files to remove: they are marked in one transaction, removed outside of it, and completed in another.

A claim expires after some time. If a process is killed before it completes a removal, the collector claims it
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_checkpoints.blobs.base import OpenUpload
from resolute_checkpoints.domain import manifest as manifest_rules
from resolute_checkpoints.domain.checkpoint import Checkpoint, Home, State, Storage
from resolute_checkpoints.store import fencing, pins
from resolute_checkpoints.store.files import shared_files, uploads
from resolute_checkpoints.store.rows import batches, decode_storage
from resolute_checkpoints.store.schema import checkpoints, files, trials

LONGEST_PAUSE = 300.0
"""Most seconds between two attempts at a removal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Files that are claimed for removal."""

    checkpoint_id: str
    storage: Storage
    whole: bool
    """Whether everything under the checkpoint's name is removed, except ``paths_in_use``."""
    paths_in_use: frozenset[str]
    """Paths under the checkpoint's name whose bytes other checkpoints need."""
    objects: tuple[Home, ...]
    """Single files to remove, which are no longer needed."""
    uploads: tuple[OpenUpload, ...]
    """Multipart uploads whose parts are removed."""
    committed: bool
    """Whether the checkpoint was ever committed."""
    claim: int
    """Only the last claim completes the removal."""
    until: float
    """When others may claim it."""
    attempts: int
    """Failures before this attempt."""


def mark_for_removal(connection: Connection, checkpoint_id: str, *, state: State, now: float) -> None:
    """Marks a whole checkpoint for removal.

    Args:
        connection: The caller's transaction.
        checkpoint_id: The checkpoint.
        state: Its new state, DELETING or ABORTED.
        now: When its files may first be removed.
    """
    connection.execute(
        sa.update(checkpoints)
        .where(checkpoints.c.checkpoint_id == checkpoint_id)
        .values(state=state.value, **_due(now))
    )


def mark_files_for_removal(
    connection: Connection, checkpoint: Checkpoint, paths: Sequence[str], *, now: float
) -> None:
    """Removes files from a committed checkpoint's list and marks them for removal."""
    doomed = set(paths)
    key = files.c.checkpoint_id == checkpoint.checkpoint_id
    positions = [
        row.position
        for row in connection.execute(sa.select(files.c.position, files.c.path).where(key))
        if row.path in doomed
    ]
    for batch in batches(positions):
        connection.execute(sa.update(files).where(key, files.c.position.in_(batch)).values(doomed=True))
    left = [file for file in checkpoint.files if file.path not in doomed]
    connection.execute(
        sa.update(checkpoints)
        .where(checkpoints.c.checkpoint_id == checkpoint.checkpoint_id)
        .values(
            state=State.PARTIALLY_DELETED.value,
            total_size=sum(file.size for file in left),
            manifest_bytes=manifest_rules.message_bytes(left),
            file_count=len(left),
            **_due(now),
        )
    )


def mark_uploads_for_removal(connection: Connection, checkpoint_id: str, *, now: float) -> None:
    """Marks the parts of uploads that a commit does not use."""
    key = checkpoints.c.checkpoint_id == checkpoint_id
    connection.execute(sa.update(checkpoints).where(key).values(**_due(now)))


def mark_experiment_for_removal(connection: Connection, experiment_id: str, *, now: float) -> None:
    """Marks all checkpoints of an experiment for removal, also open and aborted ones.

    What is pinned or a version of a model stays, and can be read without its experiment.
    """
    key = sa.and_(checkpoints.c.experiment_id == experiment_id, sa.not_(pins.is_kept()))
    deleted = checkpoints.c.state == State.DELETED.value
    connection.execute(sa.delete(checkpoints).where(key, deleted))
    connection.execute(sa.update(checkpoints).where(key).values(state=State.DELETING.value, **_due(now)))


def any_open(connection: Connection) -> bool:
    """Returns whether an upload is not committed, or a removal is not complete."""
    uploading = checkpoints.c.state == State.UPLOADING.value
    query = sa.select(checkpoints.c.checkpoint_id).where(
        sa.or_(uploading, checkpoints.c.removal_time.is_not(None))
    )
    return connection.execute(query.limit(1)).one_or_none() is not None


def abort_abandoned(
    connection: Connection, *, now: float, begun_before: float, orphans_before: float
) -> list[str]:
    """Aborts uploads whose runs are superseded, and old ones that belong to no trial.

    Returns:
        Identifiers of those that were aborted.
    """
    over = sa.exists().where(
        trials.c.trial_id == checkpoints.c.trial_id, trials.c.min_run > checkpoints.c.run
    )
    orphan = sa.and_(checkpoints.c.trial_id == "", checkpoints.c.create_time < orphans_before)
    query = (
        sa.select(checkpoints.c.checkpoint_id)
        .where(
            checkpoints.c.state == State.UPLOADING.value,
            checkpoints.c.create_time < begun_before,
            sa.or_(over, orphan),
        )
        .order_by(checkpoints.c.checkpoint_id)
        .with_for_update(skip_locked=True)
    )
    ids = list(connection.execute(query).scalars())
    for checkpoint_id in ids:
        mark_for_removal(connection, checkpoint_id, state=State.ABORTED, now=now)
    return ids


def claim(connection: Connection, ids: Sequence[str], *, until: float) -> list[Removal]:
    """Claims the removals of some checkpoints, also where they are claimed already."""
    result: list[Removal] = []
    for batch in batches(sorted(set(ids))):
        wanted = checkpoints.c.checkpoint_id.in_(batch) & checkpoints.c.removal_time.is_not(None)
        result += _claim(connection, _select().where(wanted), until=until, skip_locked=False)
    return result


def claim_due(
    connection: Connection, *, now: float, until: float, limit: int, experiment_id: str = ""
) -> list[Removal]:
    """Claims removals that are due, the oldest first; never those of inherited checkpoints.

    Args:
        connection: The caller's transaction.
        now: What the time is.
        until: When others may claim them.
        limit: Most of them.
        experiment_id: Only those of one experiment; empty for all.
    """
    # Nothing is postponed for longer: if it seems to be, the clock was set back.
    due = sa.or_(checkpoints.c.removal_time <= now, checkpoints.c.removal_time > now + LONGEST_PAUSE)
    query = _select().where(due)
    if experiment_id:
        query = query.where(checkpoints.c.experiment_id == experiment_id)
    query = query.order_by(checkpoints.c.removal_time).limit(limit)
    return _claim(connection, query, until=until, skip_locked=True)


def prolong(connection: Connection, claimed: Sequence[Removal], *, until: float) -> list[Removal]:
    """Prolongs claims; returns those that are still in progress."""
    kept = []
    for removal in claimed:
        changed = connection.execute(
            sa.update(checkpoints)
            .where(
                checkpoints.c.checkpoint_id == removal.checkpoint_id,
                checkpoints.c.removal_claim == removal.claim,
                # Otherwise it failed, and waits for its next attempt.
                checkpoints.c.removal_time == removal.until,
            )
            .values(removal_time=until)
        )
        if changed.rowcount:
            kept.append(replace(removal, until=until))
    return kept


def complete(connection: Connection, removal: Removal) -> None:
    """Records that the files are removed, unless the removal was claimed again since."""
    key = checkpoints.c.checkpoint_id == removal.checkpoint_id
    query = sa.select(checkpoints.c.state, checkpoints.c.experiment_id)
    mine = query.where(key, checkpoints.c.removal_claim == removal.claim).with_for_update()
    row = connection.execute(mine).one_or_none()
    if row is None:
        return
    gone = files.c.checkpoint_id == removal.checkpoint_id
    if not removal.whole:
        gone &= files.c.doomed
    connection.execute(sa.delete(files).where(gone))
    uploads.forget(connection, removal.checkpoint_id)
    state = State(row.state)
    if state is State.DELETING and fencing.is_experiment_deleted(connection, row.experiment_id):
        connection.execute(sa.delete(checkpoints).where(key))
        return
    values: dict[str, Any] = {"removal_time": None, "removal_attempts": 0}
    if state is State.DELETING:
        values |= {"state": State.DELETED.value, "total_size": 0, "manifest_bytes": 0, "file_count": 0}
        values["revision"] = checkpoints.c.revision + 1
    connection.execute(sa.update(checkpoints).where(key).values(**values))


def reschedule(connection: Connection, removal: Removal, *, until: float) -> None:
    """Records that an attempt failed, and when the next one is due."""
    connection.execute(
        sa.update(checkpoints)
        .where(
            checkpoints.c.checkpoint_id == removal.checkpoint_id,
            checkpoints.c.removal_claim == removal.claim,
        )
        .values(removal_time=until, removal_attempts=removal.attempts + 1)
    )


def _due(now: float) -> dict[str, Any]:
    return {
        "removal_time": now,
        "removal_attempts": 0,
        "removal_claim": checkpoints.c.removal_claim + 1,
        "revision": checkpoints.c.revision + 1,
    }


def _select() -> sa.Select[Any]:
    columns = checkpoints.c
    selected = sa.select(
        columns.checkpoint_id,
        columns.state,
        columns.experiment_id,
        columns.storage,
        columns.commit_time,
        columns.removal_claim,
        columns.removal_attempts,
    )
    # Every removal of files begins here, so none concerns files that the original may need.
    return selected.where(sa.not_(columns.inherited))


def _claim(
    connection: Connection, query: sa.Select[Any], *, until: float, skip_locked: bool
) -> list[Removal]:
    # Experiments come before checkpoints wherever both are locked.
    experiments = {row.experiment_id for row in connection.execute(query)}
    fencing.lock_experiments(connection, experiments)
    claimed = []
    for row in connection.execute(query.with_for_update(skip_locked=skip_locked)).all():
        connection.execute(
            sa.update(checkpoints)
            .where(checkpoints.c.checkpoint_id == row.checkpoint_id)
            .values(removal_time=until, removal_claim=row.removal_claim + 1)
        )
        whole = State(row.state) in {State.ABORTED, State.DELETING}
        homes = shared_files.homes_in(connection, row.checkpoint_id, doomed=not whole)
        claimed.append(
            Removal(
                checkpoint_id=row.checkpoint_id,
                storage=decode_storage(row.storage),
                whole=whole,
                paths_in_use=shared_files.paths_in_use(connection, row.checkpoint_id)
                if whole
                else frozenset(),
                objects=shared_files.unreferenced(connection, homes),
                uploads=uploads.pending(connection, row.checkpoint_id),
                committed=row.commit_time is not None,
                claim=row.removal_claim + 1,
                until=until,
                attempts=row.removal_attempts,
            )
        )
    return claimed
