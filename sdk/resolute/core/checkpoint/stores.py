"""Where the bytes of checkpoints lie."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from resolute.core.checkpoint.manifest import (
    FileEntry,
    copy_measured,
    difference,
    list_directory,
    sync_directories,
)
from resolute.errors import DataLossError, InvalidArgumentError
from resolute.trial_errors import CheckpointNotFound


class CheckpointStore(Protocol):
    """A place for the files of checkpoints. What it holds counts only once the registry says so."""

    def in_place(self, checkpoint_id: str) -> Path | None:
        """Directory in which files may be written and read directly; None when they have to be copied."""

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        """Copies files in; they are durable once this returns."""

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """Bytes by relative path, directories with a slash at the end."""

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Copies files out and compares them with what is expected of them."""

    def delete(self, checkpoint_id: str) -> None:
        """Removes all files; nothing happens if there are none."""


class DirectoryStore:
    """A directory that every process of the trial, and the service, see under the same path.

    Args:
        base: The directory; each checkpoint is a directory of its own in it.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def in_place(self, checkpoint_id: str) -> Path | None:
        """The directory of the checkpoint, whether or not it is there."""
        return self._path(checkpoint_id)

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        """Copies files in, through to the disk."""
        wanted = list(paths)
        target = self._path(checkpoint_id)
        entries = copy_measured(source, target, wanted)
        sync_directories(target, wanted)
        return entries

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """Bytes by relative path.

        Raises:
            CheckpointNotFound: There is no such directory.
        """
        return list_directory(self._existing(checkpoint_id))

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Copies files out.

        Raises:
            CheckpointNotFound: The directory or one of the files is not there.
            DataLossError: A file is not what was expected.
        """
        source = self._existing(checkpoint_id)
        try:
            copied = {entry.path: entry for entry in copy_measured(source, target, paths)}
        except FileNotFoundError as failure:
            raise CheckpointNotFound(f"a file of checkpoint {checkpoint_id} is gone: {failure}") from failure
        faults = [difference(entry, copied[entry.path]) for entry in expected if entry.path in copied]
        if any(faults):
            raise DataLossError(
                f"checkpoint {checkpoint_id} is damaged: {'; '.join(filter(None, faults))}; "
                "restore from another checkpoint"
            )

    def delete(self, checkpoint_id: str) -> None:
        """Removes the directory."""
        shutil.rmtree(self._path(checkpoint_id), ignore_errors=True)

    def _path(self, checkpoint_id: str) -> Path:
        if checkpoint_id in {"", ".", ".."} or "/" in checkpoint_id or "\0" in checkpoint_id:
            raise InvalidArgumentError(
                f"{checkpoint_id!r} is no identifier of a checkpoint: a UUID was expected"
            )
        return self._base / checkpoint_id

    def _existing(self, checkpoint_id: str) -> Path:
        path = self._path(checkpoint_id)
        if not path.is_dir():
            raise CheckpointNotFound(f"checkpoint {checkpoint_id} has no files: there is no directory {path}")
        return path
