"""Copies the files of checkpoints from the store of the other cluster to that of this one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resolute.core.checkpoint.files.manifest import FileEntry, compare, verify
from resolute.core.checkpoint.storage import DirectoryStorage, Storage, open_store, parse_storage
from resolute.errors import DataLossError, FailedPreconditionError, QuotaError, UnavailableError


class Copies:
    """Copies checkpoints from one storage to another, with the credentials of the user who runs the import.

    Args:
        source: The storage to read.
        target: The storage to write.

    Raises:
        FailedPreconditionError: The library of a store is not installed, or there are no credentials.
    """

    def __init__(self, source: Storage, target: Storage) -> None:
        self._source = open_store(source)
        self._target = open_store(target)
        self._from, self._to = _shown(source), _shown(target)

    def bring(self, checkpoint_id: str, files: Sequence[FileEntry]) -> list[FileEntry]:
        """Copies the files of a checkpoint, and reads the copy again to compare it.

        Args:
            checkpoint_id: The checkpoint.
            files: Its files as the other cluster lists them, with their sizes.

        Returns:
            The files with the digests of their content.

        Raises:
            CheckpointNotFound: It has no files there.
            DataLossError: Files are not there, or not of the size that is listed, or the copy differs.
            FailedPreconditionError: Both storages are one; or a store is full, away, or refuses.
        """
        name = f"checkpoint {checkpoint_id}"
        try:
            self._require_listed(checkpoint_id, files)
            place, target = self._source.in_place(checkpoint_id), self._target.in_place(checkpoint_id)
            if place is None:
                with _folder() as folder:
                    paths = [file.path for file in files]
                    self._source.read(checkpoint_id, folder, paths, expected=files)
                    return self._send(checkpoint_id, folder, files)
            if target is not None and place.resolve() == target.resolve():
                raise FailedPreconditionError(
                    f"{name} lies in the storage of this cluster already; import it without copying"
                )
            return self._send(checkpoint_id, place, files)
        except (QuotaError, UnavailableError, OSError) as failure:
            # Neither of the clusters is away: experiments of other storages go on.
            raise FailedPreconditionError(
                f"{name} was not copied from {self._from} to {self._to}: {failure}"
            ) from failure

    def _require_listed(self, checkpoint_id: str, files: Sequence[FileEntry]) -> None:
        found = self._source.list(checkpoint_id)
        wanted = [file for file in files if not file.is_directory]
        missing = [f"{file.path} is missing" for file in wanted if file.path not in found]
        present = (FileEntry(path, size, "") for path, size in found.items())
        compare(wanted, present, name=f"checkpoint {checkpoint_id} in {self._from}", faults=missing)

    def _send(self, checkpoint_id: str, source: Path, files: Sequence[FileEntry]) -> list[FileEntry]:
        copied = self._target.write(checkpoint_id, source, [file.path for file in files])
        name = f"the copy of checkpoint {checkpoint_id} in {self._to}"
        compare(files, copied, name=name)
        place = self._target.in_place(checkpoint_id)
        if place is not None:
            verify(place, copied, name=name)
        else:
            with _folder() as folder:
                paths = [file.path for file in copied]
                self._target.read(checkpoint_id, folder, paths, expected=copied)
        return copied


def old_storage(section: Mapping[str, Any]) -> Storage:
    """Reads where an experiment of the other cluster keeps its checkpoints.

    Args:
        section: ``checkpoint_storage`` of its config. Credentials in it are used.

    Raises:
        DataLossError: It is of a kind that cannot be read here.
    """
    try:
        if section.get("type") == "shared_fs":
            return DirectoryStorage(Path(section["host_path"]) / (section.get("storage_path") or ""))
        return parse_storage(section)
    except (LookupError, TypeError, ValueError) as error:
        raise DataLossError(f"its checkpoints cannot be copied: {error}") from error


def _shown(storage: Storage) -> str:
    if isinstance(storage, DirectoryStorage):
        return str(storage.path)
    return f"{storage.kind}://{storage.bucket}/{storage.prefix}".rstrip("/")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="resolute-import-") as folder:
        yield Path(folder)
