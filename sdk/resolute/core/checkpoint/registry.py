"""The registry of committed checkpoints."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from resolute.core.checkpoint.files.manifest import METADATA_FILE, FileEntry
from resolute.core.checkpoint.files.record import Record
from resolute.core.checkpoint.stores.base import ReadableStore, RecordKeepingStore
from resolute.core.checkpoint.stores.cached import CachedStore
from resolute.errors import ResoluteError
from resolute.transfer.cache import FileCache
from resolute.trial_errors import CheckpointNotFound

_log = logging.getLogger("resolute.core")


@dataclass(frozen=True, slots=True)
class RegisteredCheckpoint:
    """A committed checkpoint."""

    store: ReadableStore
    """Where its files lie."""
    files: tuple[FileEntry, ...] | None
    """Its files; None where no list is kept."""


class CheckpointRegistry(Protocol):
    """Registers checkpoints in two phases: a begun checkpoint is invisible until it is committed."""

    def prepare(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the metadata for the commit; fails if a required key is missing."""

    def begin(self, checkpoint_id: str) -> None:
        """Announces a checkpoint before its first byte is written."""

    def commit(self, checkpoint_id: str, *, files: Sequence[FileEntry], metadata: Mapping[str, Any]) -> None:
        """Commits a checkpoint after the reports before it were stored."""

    def abort(self, checkpoint_id: str) -> None:
        """Gives up a checkpoint that was begun. Never fails."""

    def hold(self, checkpoint_id: str) -> None:
        """Keeps retention policies from deleting a checkpoint for a minute, or raises ``ResoluteError``."""

    def find(self, checkpoint_id: str) -> RegisteredCheckpoint:
        """Returns a committed checkpoint; raises ``CheckpointNotFound`` if there is none."""

    def metadata(self, checkpoint_id: str) -> dict[str, Any]:
        """Returns the metadata of a committed checkpoint."""

    def delete(self, checkpoint_id: str) -> None:
        """Removes a checkpoint, files first."""


class LocalRegistry:
    """The registry off cluster: a record in the store, written last and deleted first, marks a checkpoint.

    Args:
        store: The store of the files and records.
        cache: The machine's cache of downloaded files; None for no cache.
    """

    def __init__(self, store: RecordKeepingStore, *, cache: FileCache | None = None) -> None:
        self._store = store
        self._readable = store if cache is None else CachedStore(store, cache)

    def prepare(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the metadata as they are: off cluster no key is required."""
        return dict(metadata or {})

    def begin(self, checkpoint_id: str) -> None:
        """Writes a provisional record, so that an unusable store fails before any work is done."""
        self._store.write_record(checkpoint_id, Record().written())

    def commit(self, checkpoint_id: str, *, files: Sequence[FileEntry], metadata: Mapping[str, Any]) -> None:
        """Writes the record by which the checkpoint is committed."""
        record = Record(finished=True, files=tuple(files), metadata=metadata)
        self._store.write_record(checkpoint_id, record.written())

    def abort(self, checkpoint_id: str) -> None:
        """Removes what was written. Files that cannot be removed do not count as a checkpoint.

        A commit may have taken effect although its caller saw a failure: an answer got lost, or another rank
        died right after it. Then there is nothing to give up.
        """
        try:
            if self._counts(checkpoint_id):
                _log.warning("checkpoint %s was finished before the failure, and counts", checkpoint_id)
                return
            self.delete(checkpoint_id)
        except (ResoluteError, OSError) as failure:
            _log.warning(
                "files of the unfinished checkpoint %s are left behind, delete() removes them: %s",
                checkpoint_id,
                failure,
            )

    def hold(self, checkpoint_id: str) -> None:
        """Off cluster no policy deletes."""

    def find(self, checkpoint_id: str) -> RegisteredCheckpoint:
        """Returns a checkpoint that was finished.

        Raises:
            CheckpointNotFound: It was not finished, or another program wrote it to a bucket.
        """
        record = self._record(checkpoint_id)
        return RegisteredCheckpoint(self._readable, None if record is None else record.files)

    def metadata(self, checkpoint_id: str) -> dict[str, Any]:
        """Returns the metadata of a checkpoint.

        Raises:
            CheckpointNotFound: There is no such checkpoint, or it has no metadata.
        """
        record = self._record(checkpoint_id)
        if record is not None:
            return dict(record.metadata)
        directory = self._store.in_place(checkpoint_id)
        try:
            metadata_read = json.loads(((directory or Path()) / METADATA_FILE).read_bytes())
        except FileNotFoundError as failure:
            raise CheckpointNotFound(
                f"checkpoint {checkpoint_id} has no metadata: there is no file {failure.filename}"
            ) from failure
        return dict(metadata_read)

    def delete(self, checkpoint_id: str) -> None:
        """Marks the checkpoint as unfinished, so that it no longer counts, and then removes its files."""
        # However this is cut short, what is left counts for nothing, and the next call continues.
        self._store.write_record(checkpoint_id, Record().written())
        self._store.delete(checkpoint_id)
        self._store.delete_record(checkpoint_id)

    def _counts(self, checkpoint_id: str) -> bool:
        content = self._store.record(checkpoint_id)
        return content is not None and Record.read(content, checkpoint_id=checkpoint_id).finished

    def _record(self, checkpoint_id: str) -> Record | None:
        """Returns the record of a finished checkpoint; None of one that counts without."""
        content = self._store.record(checkpoint_id)
        if content is None:
            if self._store.accepts_unrecorded:
                return None
            raise CheckpointNotFound(
                f"there is no checkpoint {checkpoint_id} that a script wrote off cluster; one of a cluster "
                "is fetched by the client of that cluster: resolute.client.Checkpoint.download"
            )
        record = Record.read(content, checkpoint_id=checkpoint_id)
        if not record.finished:
            raise CheckpointNotFound(
                f"checkpoint {checkpoint_id} was begun and never finished; restore from another one, and "
                "remove this one with delete()"
            )
        return record
