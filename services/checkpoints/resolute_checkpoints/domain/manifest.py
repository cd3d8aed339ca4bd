"""The content of a commit: its files, its metadata, and a digest that identifies it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import File
from resolute_checkpoints.domain.digests import check_digest
from resolute_checkpoints.domain.paths import check_path
from resolute_serving.validation import invalid_field

MAX_FILES = 250_000
"""Most entries of one checkpoint."""
_MAX_SIZE = 2**62
_ENTRY_BYTES = 32
_HOME_BYTES = 40


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a checkpoint: files and metadata. Create it by ``Manifest.checked``."""

    files: tuple[File, ...]
    metadata: Mapping[str, Any]
    steps_completed: int
    total_size: int
    """Bytes of all files."""
    digest: str
    """Equal for equal files and metadata, whatever the order they came in."""

    @classmethod
    def checked(cls, files: Sequence[File], metadata: Mapping[str, Any]) -> Manifest:
        """Checks the files of a request.

        Raises:
            InvalidArgumentError: A path, size or digest is wrong, a path is there twice, there are too many
                files, or the metadata does not tell the steps.
        """
        if len(files) > MAX_FILES:
            raise invalid_field("files", f"has {len(files)} entries; a checkpoint holds at most {MAX_FILES}")
        for index, file in enumerate(files):
            check_file(file, field=f"files[{index}]")
        _check_distinct(files)
        total = sum(file.size for file in files)
        if total > _MAX_SIZE:
            raise invalid_field("files", f"sum up to {total} bytes; at most {_MAX_SIZE} can be counted")
        ordered = tuple(sorted(files, key=lambda file: file.path))
        return cls(
            files=ordered,
            metadata=metadata,
            steps_completed=metadata_rules.steps_completed(metadata),
            total_size=total,
            digest=_digest(ordered, metadata),
        )

    def placed(self, held: Sequence[File]) -> Manifest:
        """Returns the manifest, with homes for the files that are held for the checkpoint."""
        homes = {(file.path, file.size, file.digest): file.home for file in held}
        placed = (replace(f, home=homes.get((f.path, f.size, f.digest))) for f in self.files)
        return replace(self, files=tuple(placed)) if homes else self


def message_bytes(files: Sequence[File]) -> int:
    """Returns the approximate size of the files in a response, in bytes."""
    return sum(_message_bytes(file) for file in files)


def _message_bytes(file: File) -> int:
    home = len(file.home.path.encode()) + _HOME_BYTES if file.home else 0
    return len(file.path.encode()) + len(file.digest) + home + _ENTRY_BYTES


def check_file(file: File, *, field: str) -> None:
    """Checks one entry.

    Raises:
        InvalidArgumentError: Its path, size or digest is wrong.
    """
    check_path(file.path, field=f"{field}.path")
    if not 0 <= file.size <= _MAX_SIZE:
        raise invalid_field(f"{field}.size", f"is {file.size}; it must be a number of bytes from 0")
    if file.is_directory and (file.size or file.digest):
        raise invalid_field(field, f"{file.path!r} is a directory; it has no size and no digest")
    if file.digest:
        check_digest(file.digest, field=f"{field}.digest")


def _check_distinct(files: Sequence[File]) -> None:
    seen: set[str] = set()
    for index, file in enumerate(files):
        name = file.path.removesuffix("/")
        if name in seen:
            raise invalid_field(f"files[{index}].path", f"{file.path!r} is there twice; name each file once")
        seen.add(name)


def _digest(files: Sequence[File], metadata: Mapping[str, Any]) -> str:
    hasher = hashlib.sha256()
    for file in files:
        # No path holds a NUL, so the parts cannot run into each other.
        hasher.update(f"{file.path}\0{file.size}\0{file.digest}\0".encode())
    hasher.update(metadata_rules.encode(metadata).encode())
    return hasher.hexdigest()
