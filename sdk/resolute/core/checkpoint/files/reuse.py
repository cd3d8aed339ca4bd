"""Finds files that need no upload, because an earlier checkpoint in the store has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from resolute.core.checkpoint.files.manifest import FileEntry, hash_files

_AT_ONCE = 10_000
_ENTRY_BYTES = 100
_REQUEST_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Reusable:
    """The registry's answer about the files of earlier checkpoints."""

    candidates: frozenset[str] = frozenset()
    """Paths of files without a digest, of a size that the latest checkpoint has too."""
    held: Mapping[str, str] = field(default_factory=dict)
    """Where the bytes of files lie, by path: ``<checkpoint id>/<path>``."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that the store has."""

    entry: FileEntry
    home: str
    """Where its bytes lie: ``<checkpoint id>/<path>``."""


ReusableFiles: TypeAlias = Callable[[str, Sequence[FileEntry]], Reusable]
"""Says which files need not be sent for a checkpoint; those without a digest may turn out so."""


class Reuse:
    """Finds files that need no upload, with as little reading as possible.

    A file is hashed before the upload only if the latest checkpoint has one of its size. A file whose content
    has changed is afterwards uploaded without this hash, until it stays the same between two checkpoints.

    Args:
        reusable_files: Looks up the files of the experiment's earlier checkpoints.
    """

    def __init__(self, reusable_files: ReusableFiles) -> None:
        self._reusable_files = reusable_files
        self._changing: set[str] = set()
        self._last: dict[str, str] = {}

    def find(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> dict[str, StoredFile]:
        """Finds files that the store has.

        Args:
            checkpoint_id: The checkpoint that is being written.
            source: Directory of its files.
            paths: The files.

        Returns:
            Those that need not be sent, by path.
        """
        unsure = [
            FileEntry(path, (source / path).stat().st_size, "")
            for path in paths
            if not path.endswith("/") and path not in self._changing
        ]
        candidates: set[str] = set()
        for batch in _batches(unsure):
            candidates |= self._reusable_files(checkpoint_id, batch).candidates
        summed = {entry.path: entry for entry in hash_files(source, sorted(candidates))}
        held: dict[str, StoredFile] = {}
        for batch in _batches(summed.values()):
            homes = self._reusable_files(checkpoint_id, batch).held
            held |= {path: StoredFile(summed[path], home) for path, home in homes.items()}
        return held

    def sent(self, entries: Iterable[FileEntry]) -> None:
        """Takes note of files that were sent."""
        for entry in entries:
            last = self._last.get(entry.path)
            if last == entry.digest:
                self._changing.discard(entry.path)
            elif last is not None:
                self._changing.add(entry.path)
            self._last[entry.path] = entry.digest


def _batches(entries: Iterable[FileEntry]) -> Iterator[list[FileEntry]]:
    """Cuts a list into parts that fit a request."""
    batch: list[FileEntry] = []
    size = 0
    for entry in entries:
        bytes_ = len(entry.path.encode()) + _ENTRY_BYTES
        if batch and (len(batch) == _AT_ONCE or size + bytes_ > _REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += bytes_
    if batch:
        yield batch
