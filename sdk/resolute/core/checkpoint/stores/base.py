"""The protocol of a store of checkpoint files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from resolute.core.checkpoint.files.manifest import (
    FileEntry,
)
from resolute.errors import InvalidArgumentError


class ReadableStore(Protocol):
    """A store from which checkpoints can be read."""

    def in_place(self, checkpoint_id: str) -> Path | None:
        """Directory in which files may be written and read directly; None when they have to be copied."""

    def list(self, checkpoint_id: str) -> dict[str, int]:
        """Bytes by relative path, directories with a slash at the end."""

    def read(
        self, checkpoint_id: str, target: Path, paths: Iterable[str], *, expected: Sequence[FileEntry]
    ) -> None:
        """Copies files out and compares them with what is expected of them."""


class CheckpointStore(ReadableStore, Protocol):
    """A store of checkpoint files. A checkpoint in it is visible only once the registry has committed it."""

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        """Copies files in; they are durable once this returns."""

    def await_room(self, size: int) -> None:
        """Waits until so many bytes can be written in place, where the store tells and may be waited for."""

    def delete(self, checkpoint_id: str) -> None:
        """Removes all files; nothing happens if there are none."""


class RecordKeepingStore(CheckpointStore, Protocol):
    """A store that keeps its own records of its checkpoints, because no service registers them."""

    accepts_unrecorded: bool
    """Whether a checkpoint without a record counts: somebody else put it there."""

    def record(self, checkpoint_id: str) -> bytes | None:
        """What was kept of a checkpoint; None if nothing was."""

    def write_record(self, checkpoint_id: str, content: bytes) -> None:
        """Keeps something of a checkpoint, in one step; it is durable once this returns."""

    def delete_record(self, checkpoint_id: str) -> None:
        """Forgets a checkpoint; nothing happens if nothing was kept of it."""


def check_identifier(checkpoint_id: str) -> None:
    """Makes sure that an identifier leads to nothing but its own checkpoint.

    Raises:
        InvalidArgumentError: It may lead elsewhere.
    """
    if not checkpoint_id or checkpoint_id.startswith(".") or "/" in checkpoint_id or "\0" in checkpoint_id:
        raise InvalidArgumentError(
            f"{checkpoint_id!r} is not an identifier of a checkpoint: a UUID was expected"
        )
