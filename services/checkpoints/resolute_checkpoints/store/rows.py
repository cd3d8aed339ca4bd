"""Rows of checkpoints and their files, to and from values."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from resolute_checkpoints import metadata as metadata_rules
from resolute_checkpoints.checkpoint import (
    BucketStorage,
    Checkpoint,
    DirectoryStorage,
    File,
    Home,
    Owner,
    State,
    Storage,
)
from resolute_checkpoints.schema import checkpoints, files

_BATCH = 500
_KINDS: Mapping[str, type[DirectoryStorage | BucketStorage]] = {
    "directory": DirectoryStorage,
    "bucket": BucketStorage,
}


def to_values(checkpoint: Checkpoint) -> dict[str, Any]:
    """The columns of a checkpoint that was just begun."""
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "state": checkpoint.state.value,
        **dataclasses.asdict(checkpoint.owner),
        "storage": encode_storage(checkpoint.storage),
        "metadata": metadata_rules.encode(checkpoint.metadata),
        "manifest_digest": "",
        "manifest_bytes": 0,
        "steps_completed": 0,
        "total_size": 0,
        "create_time": checkpoint.create_time,
        "list_time": checkpoint.create_time,
        "removal_attempts": 0,
        "removal_claim": 0,
    }


def load(
    connection: Connection, ids: Sequence[str], *, lock: bool = False, listed: bool = True
) -> dict[str, Checkpoint]:
    """Reads checkpoints; those that do not exist are missing in the answer.

    Args:
        connection: The caller's transaction.
        ids: Which ones.
        lock: Whether their rows stay as they are until the transaction ends.
        listed: Whether with their files.
    """
    result: dict[str, Checkpoint] = {}
    # One order for everybody who locks several rows, so that nobody waits in a circle.
    for batch in batches(sorted(set(ids))):
        query = sa.select(checkpoints).where(checkpoints.c.checkpoint_id.in_(batch))
        query = query.order_by(checkpoints.c.checkpoint_id)
        rows = connection.execute(query.with_for_update() if lock else query).all()
        found = _load_files(connection, batch) if listed else {}
        result.update(
            (row.checkpoint_id, _to_checkpoint(row, found.get(row.checkpoint_id, ()))) for row in rows
        )
    return result


def batches(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Cuts a sequence into parts that fit the parameters of one statement."""
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def encode_storage(storage: Storage) -> str:
    """Writes storage as JSON; equal storage gives equal text."""
    kind = "directory" if isinstance(storage, DirectoryStorage) else "bucket"
    return json.dumps({"kind": kind, **dataclasses.asdict(storage)}, sort_keys=True, ensure_ascii=False)


def decode_storage(text: str) -> Storage:
    """Reads storage that ``encode_storage`` wrote."""
    fields = json.loads(text)
    return _KINDS[fields.pop("kind")](**fields)


def _load_files(connection: Connection, ids: Sequence[str]) -> Mapping[str, list[File]]:
    query = (
        sa.select(
            files.c.checkpoint_id,
            files.c.path,
            files.c.size,
            files.c.digest,
            files.c.home_id,
            files.c.home_path,
        )
        .where(files.c.checkpoint_id.in_(ids), sa.not_(files.c.doomed))
        .order_by(files.c.checkpoint_id, files.c.position)
    )
    result: defaultdict[str, list[File]] = defaultdict(list)
    for checkpoint_id, path, size, digest, home_id, home_path in connection.execute(query):
        home = Home(home_id, home_path) if home_id else None
        result[checkpoint_id].append(File(path, size, digest, home))
    return result


def _to_checkpoint(row: Row[Any], listed: Sequence[File]) -> Checkpoint:
    return Checkpoint(
        checkpoint_id=row.checkpoint_id,
        state=State(row.state),
        owner=Owner(
            trial_id=row.trial_id, experiment_id=row.experiment_id, run=row.run, workspace=row.workspace
        ),
        storage=decode_storage(row.storage),
        create_time=row.create_time,
        commit_time=row.commit_time,
        steps_completed=row.steps_completed,
        total_size=row.total_size,
        files=tuple(listed),
        metadata=metadata_rules.decode(row.metadata),
        manifest_digest=row.manifest_digest,
    )


def insert_files(
    connection: Connection, checkpoint_id: str, entries: Sequence[File], *, first: int = 0
) -> None:
    """Adds files to a checkpoint.

    Args:
        connection: The caller's transaction.
        checkpoint_id: The checkpoint.
        entries: The files.
        first: Position of the first of them.
    """
    values = [
        {
            "checkpoint_id": checkpoint_id,
            "position": position,
            "path": file.path,
            "size": file.size,
            "digest": file.digest,
            "doomed": False,
            "home_id": file.home.checkpoint_id if file.home else None,
            "home_path": file.home.path if file.home else None,
        }
        for position, file in enumerate(entries, start=first)
    ]
    if values:
        connection.execute(sa.insert(files), values)
