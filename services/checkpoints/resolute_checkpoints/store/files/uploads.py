"""Unfinished multipart uploads, whose parts take space until they are completed or removed.

An upload is recorded before its URLs are returned. So an unrecorded upload has no parts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_checkpoints.blobs.base import OpenUpload
from resolute_checkpoints.store.rows import batches
from resolute_checkpoints.store.schema import uploads


def add(connection: Connection, checkpoint_id: str, begun: Sequence[OpenUpload]) -> None:
    """Records new multipart uploads."""
    values = [
        {"checkpoint_id": checkpoint_id, "path": upload.path, "upload_id": upload.upload_id}
        for upload in begun
    ]
    connection.execute(sa.insert(uploads), values)


def pending(connection: Connection, checkpoint_id: str) -> tuple[OpenUpload, ...]:
    """Returns the multipart uploads of a checkpoint that are not completed."""
    query = sa.select(uploads.c.path, uploads.c.upload_id).where(uploads.c.checkpoint_id == checkpoint_id)
    return tuple(OpenUpload(path, id_) for path, id_ in connection.execute(query.order_by(uploads.c.entry)))


def remove_finished(connection: Connection, checkpoint_id: str, finished: Collection[str]) -> bool:
    """Removes the completed uploads; returns whether others are left."""
    key = uploads.c.checkpoint_id == checkpoint_id
    for batch in batches(sorted(finished)):
        connection.execute(sa.delete(uploads).where(key, uploads.c.upload_id.in_(batch)))
    return connection.execute(sa.select(sa.exists().where(key))).scalar_one()


def forget(connection: Connection, checkpoint_id: str) -> None:
    """Removes the uploads of a checkpoint, which have no parts any more."""
    connection.execute(sa.delete(uploads).where(uploads.c.checkpoint_id == checkpoint_id))
