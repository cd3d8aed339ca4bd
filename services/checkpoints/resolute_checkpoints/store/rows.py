"""Converts rows of checkpoints and their files to and from values."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import (
    BucketStorage,
    Checkpoint,
    DirectoryStorage,
    File,
    Home,
    Owner,
    Provider,
    State,
    Storage,
)
from resolute_checkpoints.store.schema import checkpoints, files

_BATCH = 500
_BUCKETS: Mapping[str, Provider] = {
    "bucket": Provider.S3,
    "gcs": Provider.GCS,
    "azure": Provider.AZURE,
}
"""Providers by their names in rows; S3 keeps the name that it had before there were others."""
_KINDS: Mapping[Provider, str] = {provider: kind for kind, provider in _BUCKETS.items()}


def to_values(checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns the columns of a new checkpoint."""
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
    connection: Connection,
    ids: Sequence[str],
    *,
    lock: bool = False,
    listed: bool = True,
    most_bytes: int | None = None,
) -> dict[str, Checkpoint]:
    """Reads checkpoints; those that do not exist are missing in the answer.

    Args:
        connection: The caller's transaction.
        ids: Which ones.
        lock: Whether their rows stay as they are until the transaction ends.
        listed: Whether with their files.
        most_bytes: Leaves out the files of those that would take more in a response; None for no limit.
    """
    result: dict[str, Checkpoint] = {}
    # One order for every transaction that locks several rows, so that none deadlocks.
    for batch in batches(sorted(set(ids))):
        query = sa.select(checkpoints).where(checkpoints.c.checkpoint_id.in_(batch))
        query = query.order_by(checkpoints.c.checkpoint_id)
        rows = connection.execute(query.with_for_update() if lock else query).all()
        short = [
            row.checkpoint_id
            for row in rows
            if listed and (most_bytes is None or row.manifest_bytes <= most_bytes)
        ]
        files = _load_files(connection, short) if short else {}
        result.update(
            (row.checkpoint_id, _to_checkpoint(row, files.get(row.checkpoint_id, ()))) for row in rows
        )
    return result


def batches(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Divides a sequence into parts that fit the parameters of one statement."""
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def encode_storage(storage: Storage) -> str:
    """Encodes a storage as JSON; equal storages give equal text."""
    fields = dataclasses.asdict(storage)
    if isinstance(storage, DirectoryStorage):
        kind = "directory"
    else:
        kind = _KINDS[fields.pop("provider")]
        # Rows of earlier releases say so; other text would share no bytes with them.
        fields["credentials"] = ""
    return json.dumps({"kind": kind, **fields}, sort_keys=True, ensure_ascii=False)


def decode_storage(text: str) -> Storage:
    """Decodes the JSON of ``encode_storage``."""
    fields = json.loads(text)
    kind = fields.pop("kind")
    if kind == "directory":
        return DirectoryStorage(**fields)
    fields.pop("credentials", None)
    return BucketStorage(**fields, provider=_BUCKETS[kind])


def find_files(connection: Connection, checkpoint_id: str, paths: Sequence[str]) -> dict[str, File]:
    """Reads files of a checkpoint by their paths; those that it has not are missing in the answer."""
    by_path: dict[str, File] = {}
    for batch in batches(paths):
        query = sa.select(files).where(
            files.c.checkpoint_id == checkpoint_id, sa.not_(files.c.doomed), files.c.path.in_(batch)
        )
        by_path.update((row["path"], to_file(row)) for row in connection.execute(query).mappings())
    return by_path


def _load_files(connection: Connection, ids: Sequence[str]) -> Mapping[str, list[File]]:
    query = (
        sa.select(files)
        .where(files.c.checkpoint_id.in_(ids), sa.not_(files.c.doomed))
        .order_by(files.c.checkpoint_id, files.c.position)
    )
    result: defaultdict[str, list[File]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        result[row["checkpoint_id"]].append(to_file(row))
    return result


def to_file(row: Mapping[Any, Any]) -> File:
    """Reads one file."""
    home = Home(row["home_id"], row["home_path"]) if row["home_id"] else None
    return File(row["path"], row["size"], row["digest"], home)


def _to_checkpoint(row: Row[Any], listed: Sequence[File]) -> Checkpoint:
    return Checkpoint(
        checkpoint_id=row.checkpoint_id,
        state=State(row.state),
        owner=Owner(
            trial_id=row.trial_id,
            experiment_id=row.experiment_id,
            run=row.run,
            workspace=row.workspace,
            workspace_id=row.workspace_id,
        ),
        storage=decode_storage(row.storage),
        create_time=row.create_time,
        commit_time=row.commit_time,
        steps_completed=row.steps_completed,
        total_size=row.total_size,
        files=tuple(listed),
        metadata=metadata_rules.decode(row.metadata),
        manifest_digest=row.manifest_digest,
        file_count=row.file_count,
        pinned=row.pinned,
        revision=row.revision,
        inherited=row.inherited,
        keep_reasons=tuple(filter(None, row.keep_reasons.split(","))),
    )


def insert_files(connection: Connection, lists: Mapping[str, Sequence[File]], *, first: int = 0) -> None:
    """Adds files to checkpoints.

    Args:
        connection: The caller's transaction.
        lists: The files by their checkpoints.
        first: Position of the first file of each.
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
        for checkpoint_id, entries in lists.items()
        for position, file in enumerate(entries, start=first)
    ]
    if values:
        connection.execute(sa.insert(files), values)
