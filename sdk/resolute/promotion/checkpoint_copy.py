"""Adds a checkpoint to the run that is sent to another cluster, and compares every byte of the copy there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from resolute.client.downloads.checkpoint_files import download
from resolute.client.downloads.verification import verify
from resolute.client.schema.records import CheckpointRecord
from resolute.client.services import Services
from resolute.core.checkpoint.files.manifest import FileEntry, sync_directories
from resolute.core.checkpoint.files.record import Record
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.core.remote.registry import metadata_with_steps
from resolute.core.unmanaged.recorded_checkpoints import RecordedCheckpoints
from resolute.errors import DataLossError

PROMOTED_TO = "promoted_to"
"""In the metadata of a checkpoint: its copies on other clusters, by their UUIDs."""


class CheckpointCopy:
    """The copy of a checkpoint in the directory of the run that has the history.

    Args:
        directory: The run's directory.
        copy_id: UUID of the copy.
    """

    def __init__(self, directory: Path, copy_id: str) -> None:
        self._base = RecordedCheckpoints(directory).base
        self._store = DirectoryStore(self._base)
        self._copy_id = copy_id

    @property
    def is_whole(self) -> bool:
        """Whether all of it is here."""
        return self._store.record(self._copy_id) is not None

    def bring(self, original: CheckpointRecord, source: Services, *, lineage: Mapping[str, Any]) -> None:
        """Fetches it, unless it is here; what an interrupted call has brought is used again.

        Args:
            original: The checkpoint.
            source: The cluster that has it.
            lineage: Where it comes from, for the metadata of the copy.

        Raises:
            DataLossError: A file of the original is not what was committed.
            QuotaError: The disk is full.
        """
        download(original, self._base / self._copy_id, registry=source.checkpoints)
        files = tuple(FileEntry(file.path, file.size, file.digest) for file in original.files)
        own = {name: value for name, value in original.metadata.items() if name != PROMOTED_TO}
        metadata = metadata_with_steps({**own, "promoted_from": dict(lineage)})
        self._store.write_record(
            self._copy_id, Record(finished=True, files=files, metadata=metadata).written()
        )

    def rename(self, copy_id: str) -> None:
        """Gives it another UUID. A call that was cut short is finished by the same call."""
        content = self._store.record(self._copy_id)
        if content is not None:
            self._store.write_record(copy_id, content)
        files = self._base / self._copy_id
        if files.exists():
            files.rename(self._base / copy_id)
            sync_directories(self._base, ())
        self._store.delete_record(self._copy_id)

    def compare(self, target: Services) -> None:
        """Reads the copy at its cluster and compares it with the digests of the original.

        Raises:
            DataLossError: It is not the same.
            FailedPreconditionError: It was removed there.
        """
        content = self._store.record(self._copy_id)
        if content is None:
            raise DataLossError(f"the record of checkpoint {self._copy_id} is gone from {self._base}")
        expected = Record.read(content, checkpoint_id=self._copy_id).files
        copy = target.checkpoints.get(self._copy_id)
        written = {file.path: file for file in copy.files}
        missing = [f"{file.path} is missing" for file in expected if file.path not in written]
        # What was stored without a digest got one when it was sent.
        files = [
            replace(written[file.path], size=file.size, digest=file.digest or written[file.path].digest)
            for file in expected
            if file.path in written
        ]
        checked = verify(replace(copy, files=tuple(files)), registry=target.checkpoints)
        faults = [*missing, *(f"{file.path} {file.fault}" for file in checked if file.fault)]
        if faults:
            raise DataLossError(
                f"the copy {self._copy_id} is not the same as the original checkpoint: {'; '.join(faults)}; "
                "remove it there with `resolute checkpoint delete`, and promote again"
            )
