"""Which checkpoints count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from resolute.core.checkpoint.manifest import FileEntry
from resolute.core.checkpoint.stores import CheckpointStore


@dataclass(frozen=True, slots=True)
class Registered:
    """A checkpoint that counts."""

    store: CheckpointStore
    """Where its files lie."""
    files: tuple[FileEntry, ...] | None
    """Its files; None where nobody keeps a list."""


class CheckpointRegistry(Protocol):
    """Registers checkpoints in two phases: what was begun is invisible until it is committed."""

    def prepare(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the metadata to commit with; fails if they lack something."""

    def begin(self, checkpoint_id: str) -> None:
        """Announces a checkpoint before its first byte is written."""

    def commit(self, checkpoint_id: str, *, files: Sequence[FileEntry], metadata: Mapping[str, Any]) -> None:
        """Makes a checkpoint count, once the reports before it are safe."""

    def abort(self, checkpoint_id: str) -> None:
        """Gives up a checkpoint that was begun. Never fails."""

    def find(self, checkpoint_id: str) -> Registered:
        """Returns a checkpoint that counts; ``CheckpointNotFound`` if there is none."""

    def metadata(self, checkpoint_id: str) -> dict[str, Any]:
        """Returns the metadata of a checkpoint that counts."""

    def delete(self, checkpoint_id: str) -> None:
        """Removes a checkpoint, files first."""


class LocalRegistry:
    """Off cluster every directory of the store counts.

    Args:
        store: Where files lie.
    """

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    def prepare(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        """Any metadata will do."""
        return dict(metadata or {})

    def begin(self, checkpoint_id: str) -> None:
        """Nobody is told."""

    def commit(self, checkpoint_id: str, *, files: Sequence[FileEntry], metadata: Mapping[str, Any]) -> None:
        """Nobody is told."""

    def abort(self, checkpoint_id: str) -> None:
        """Removes what was written."""
        self._store.delete(checkpoint_id)

    def find(self, checkpoint_id: str) -> Registered:
        """Whatever is in the store."""
        return Registered(self._store, None)

    def metadata(self, checkpoint_id: str) -> dict[str, Any]:
        """Fails.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "metadata of checkpoints are kept on cluster only; "
            "off cluster read metadata.json in restore_path()"
        )

    def delete(self, checkpoint_id: str) -> None:
        """Removes the files."""
        self._store.delete(checkpoint_id)
