"""Checkpoints in the database: begin, complete, read, list and patch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_checkpoints.domain import manifest as manifest_rules
from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import (
    Checkpoint,
    File,
    State,
)
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.store import rows
from resolute_checkpoints.store.schema import checkpoints, files
from resolute_checkpoints.store.sizes import text_bytes
from resolute_serving.database.engine import insert_new
from resolute_serving.pagination import Ordering

MESSAGE_BYTES = 1024 * 1024
"""About how large the files of one checkpoint may get in a message; longer lists are read apart."""
_ENTRY_BYTES = 80
_MAX_FILES = 10_000
_listed = sa.case((checkpoints.c.manifest_bytes > MESSAGE_BYTES, 0), else_=checkpoints.c.manifest_bytes)
_ORDERING = Ordering(
    {
        "commit_time": checkpoints.c.list_time,
        "create_time": checkpoints.c.create_time,
        "steps_completed": checkpoints.c.steps_completed,
        "total_size": checkpoints.c.total_size,
    },
    unique=checkpoints.c.checkpoint_id,
    default="commit_time desc",
    row_bytes=_listed + text_bytes(checkpoints.c.metadata),
)
_FILE_ORDERING = Ordering(
    # Manifests are sorted by path when they are committed.
    {"path": files.c.position, "size": files.c.size},
    unique=files.c.position,
    default="path",
    max_page_size=_MAX_FILES,
    row_bytes=text_bytes(files.c.path, files.c.digest, sa.func.coalesce(files.c.home_path, ""))
    + _ENTRY_BYTES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFilter:
    """A filter of checkpoints. Empty fields filter nothing."""

    states: Collection[State]
    trial_ids: Collection[str] = ()
    experiment_ids: Collection[str] = ()
    pinned: bool | None = None


def insert(connection: Connection, checkpoint: Checkpoint) -> bool:
    """Adds a new checkpoint, unless its UUID exists; returns whether it was added."""
    return insert_new(connection, checkpoints, rows.to_values(checkpoint))


def existing(connection: Connection, ids: Collection[str]) -> list[str]:
    """Returns the UUIDs that checkpoints have or had."""
    query = sa.select(checkpoints.c.checkpoint_id).where(checkpoints.c.checkpoint_id.in_(ids))
    return list(connection.execute(query).scalars()) if ids else []


def find(
    connection: Connection,
    checkpoint_id: str,
    *,
    lock: bool = False,
    listed: bool = True,
    most_bytes: int | None = None,
) -> Checkpoint:
    """Reads one checkpoint.

    Args:
        connection: The caller's transaction.
        checkpoint_id: Which one.
        lock: Whether its row stays as it is until the transaction ends.
        listed: Whether with its files.
        most_bytes: Leaves out files that would take more in a response; None for no limit.

    Raises:
        NotFoundError: There is none.
    """
    loaded = rows.load(connection, [checkpoint_id], lock=lock, listed=listed, most_bytes=most_bytes)
    if checkpoint_id not in loaded:
        raise missing(checkpoint_id)
    return loaded[checkpoint_id]


def experiments_of(connection: Connection, checkpoint_ids: Collection[str]) -> dict[str, str]:
    """UUIDs of the experiments of checkpoints, by the UUIDs of these; what does not exist is left out."""
    experiments: dict[str, str] = {}
    for batch in rows.batches(list(checkpoint_ids)):
        query = sa.select(checkpoints.c.checkpoint_id, checkpoints.c.experiment_id)
        read = connection.execute(query.where(checkpoints.c.checkpoint_id.in_(batch)))
        experiments.update((row.checkpoint_id, row.experiment_id) for row in read)
    return experiments


def missing(checkpoint_id: str) -> NotFoundError:
    """Returns the error that a checkpoint does not exist."""
    return NotFoundError(
        f"checkpoint {checkpoint_id} does not exist; list the checkpoints of its trial to see which do",
        resource=f"checkpoint {checkpoint_id}",
    )


def complete(connection: Connection, checkpoint_id: str, manifest: Manifest, *, now: float) -> None:
    """Makes a checkpoint visible with what was committed."""
    # Files that were held for it have rows already.
    connection.execute(sa.delete(files).where(files.c.checkpoint_id == checkpoint_id))
    rows.insert_files(connection, {checkpoint_id: manifest.files})
    connection.execute(
        sa.update(checkpoints)
        .where(checkpoints.c.checkpoint_id == checkpoint_id)
        .values(
            state=State.COMPLETED.value,
            revision=checkpoints.c.revision + 1,
            unranked=checkpoints.c.trial_id != "",
            **_committed(manifest, now=now),
        )
    )


def insert_committed(connection: Connection, committed: Sequence[tuple[Checkpoint, Manifest]]) -> None:
    """Adds checkpoints that another cluster has committed.

    Args:
        connection: The caller's transaction.
        committed: What has become of each, with the times at which it was begun and committed and whether
            its files are inherited; and what was committed, without what was deleted since.
    """
    if not committed:
        return
    values = [
        {
            **rows.to_values(checkpoint),
            **_committed(manifest, now=checkpoint.commit_time or checkpoint.create_time),
            "inherited": checkpoint.inherited,
        }
        for checkpoint, manifest in committed
    ]
    connection.execute(sa.insert(checkpoints), values)
    rows.insert_files(connection, {one.checkpoint_id: manifest.files for one, manifest in committed})


def _committed(manifest: Manifest, *, now: float) -> dict[str, Any]:
    """Returns the columns that a commit sets."""
    return {
        "metadata": metadata_rules.encode(manifest.metadata),
        "manifest_digest": manifest.digest,
        "manifest_bytes": manifest_rules.message_bytes(manifest.files),
        "steps_completed": manifest.steps_completed,
        "total_size": manifest.total_size,
        "file_count": len(manifest.files),
        "commit_time": now,
        "list_time": now,
    }


def replace_metadata(connection: Connection, checkpoint_id: str, metadata: Mapping[str, Any]) -> None:
    """Replaces the metadata of a checkpoint."""
    connection.execute(
        sa.update(checkpoints)
        .where(checkpoints.c.checkpoint_id == checkpoint_id)
        .values(metadata=metadata_rules.encode(metadata), revision=checkpoints.c.revision + 1)
    )


def latest(connection: Connection, trial_id: str) -> Checkpoint | None:
    """Returns the committed checkpoint with the most steps, without those left behind.

    Of several, the last committed.
    """
    query = (
        sa.select(checkpoints.c.checkpoint_id)
        .where(
            checkpoints.c.trial_id == trial_id,
            checkpoints.c.state == State.COMPLETED.value,
            sa.not_(checkpoints.c.left_behind),
        )
        .order_by(
            checkpoints.c.steps_completed.desc(),
            checkpoints.c.commit_time.desc(),
            checkpoints.c.checkpoint_id,
        )
        .limit(1)
    )
    newest = connection.execute(query).scalar()
    return None if newest is None else rows.load(connection, [newest], most_bytes=MESSAGE_BYTES).get(newest)


def leave_behind(connection: Connection, trial_id: str, *, below_run: int, most_steps: int) -> None:
    """Marks checkpoints of earlier runs after a step as left behind: no run resumes from them."""
    connection.execute(
        sa.update(checkpoints)
        .where(
            checkpoints.c.trial_id == trial_id,
            checkpoints.c.run < below_run,
            checkpoints.c.steps_completed > most_steps,
        )
        .values(left_behind=True, revision=checkpoints.c.revision + 1)
    )


def page(connection: Connection, wanted: CheckpointFilter, request: Any) -> tuple[list[Checkpoint], str]:
    """Reads one page of a list.

    Args:
        connection: The caller's transaction.
        wanted: Which checkpoints.
        request: The request, for the page and the order.

    Returns:
        The checkpoints, and the token of the next page.
    """
    query = sa.select(checkpoints.c.checkpoint_id)
    query = query.where(checkpoints.c.state.in_([state.value for state in wanted.states]))
    for column, ids in (
        (checkpoints.c.trial_id, wanted.trial_ids),
        (checkpoints.c.experiment_id, wanted.experiment_ids),
    ):
        if ids:
            query = query.where(column.in_(ids))
    if wanted.pinned is not None:
        query = query.where(checkpoints.c.pinned == wanted.pinned)
    page_rows = _ORDERING.page(connection, request, query)
    ids = [row["checkpoint_id"] for row in page_rows.rows]
    read = rows.load(connection, ids, most_bytes=MESSAGE_BYTES)
    # Another replica may have removed some since.
    return [read[id_] for id_ in ids if id_ in read], page_rows.next_page_token


def file_page(
    connection: Connection, checkpoint_id: str, path_prefix: str, request: Any
) -> tuple[list[File], str]:
    """Reads one page of the files of a checkpoint.

    Args:
        connection: The caller's transaction.
        checkpoint_id: The checkpoint.
        path_prefix: What the paths begin with.
        request: The request, for the page and the order.

    Returns:
        The files, and the token of the next page.
    """
    query = sa.select(files).where(files.c.checkpoint_id == checkpoint_id, sa.not_(files.c.doomed))
    if path_prefix:
        # LIKE does not tell upper from lower case everywhere.
        query = query.where(sa.func.substr(files.c.path, 1, len(path_prefix)) == path_prefix)
    page_rows = _FILE_ORDERING.page(connection, request, query)
    return [rows.to_file(row) for row in page_rows.rows], page_rows.next_page_token
