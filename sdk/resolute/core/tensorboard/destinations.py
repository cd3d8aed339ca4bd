"""Destinations of TensorBoard files: beside the checkpoints, in a directory or a bucket."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from resolute.contracts.object_stores.bucket import Bucket
from resolute.contracts.object_stores.factory import open_bucket
from resolute.core.checkpoint.storage import DirectoryStorage, parse_storage

_KINDS = ("azure", "directory", "gcs", "s3", "shared_fs")


class Destination(Protocol):
    """The place for the files of one trial or of one experiment."""

    def put(self, source: Path, name: str) -> None:
        """Copies a file, in the place of an earlier one of that name."""

    def fetch(self, target: Path) -> Path:
        """Returns a directory that has the files: theirs, or ``target``, into which what is new was copied.

        Raises:
            ResoluteError: The store cannot be read now.
        """

    def delete(self) -> None:
        """Removes all files."""


class DirectoryDestination:
    """A directory.

    Args:
        path: The directory; it is created with the first file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, source: Path, name: str) -> None:
        """Copies a file in one step, so that readers never see a part of it."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        shutil.copyfile(source, partial)
        partial.replace(target)

    def fetch(self, target: Path) -> Path:
        """Returns the directory."""
        del target
        return self.path

    def delete(self) -> None:
        """Removes the directory."""
        shutil.rmtree(self.path, ignore_errors=True)


class BucketDestination:
    """Objects of a bucket.

    Args:
        bucket: The bucket.
        prefix: Prefix of the objects' names.
    """

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix

    def put(self, source: Path, name: str) -> None:
        """Writes an object."""
        with source.open("rb") as content:
            self._bucket.put(f"{self._prefix}/{name}", content, size=os.fstat(content.fileno()).st_size)

    def fetch(self, target: Path) -> Path:
        """Copies what the directory lacks of each object: event files grow while readers hold them open."""
        start = f"{self._prefix}/"
        target.mkdir(parents=True, exist_ok=True)
        for key, size in list(self._bucket.sizes(start)):
            name = PurePosixPath(key.removeprefix(start))
            if name.is_absolute() or ".." in name.parts:
                continue
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as copy:
                if copy.tell() > size:
                    copy.seek(copy.truncate(0))
                if copy.tell() < size:
                    copy.writelines(self._bucket.read(key, start=copy.tell()))
        return target

    def delete(self) -> None:
        """Removes all objects whose names begin so."""
        self._bucket.delete([key for key, _ in self._bucket.sizes(f"{self._prefix}/")])


def open_destination(
    storage: Mapping[str, Any] | str, sync_path: Path, *, container_path: str | None
) -> Destination:
    """Returns where files are kept.

    Args:
        storage: Like the section ``checkpoint_storage`` of a config, or as short as core.init() takes it.
        sync_path: Path of the files in it.
        container_path: Directory in the place of the ``host_path`` of a ``shared_fs``.

    Raises:
        TypeError: The storage has no type, or one that does not exist.
        ValueError: A field of it is missing or wrong.
    """
    if isinstance(storage, Mapping):
        kind = storage.get("type")
        if not isinstance(kind, str):
            raise TypeError(
                f"checkpoint_storage has the type {kind!r}; one of {', '.join(_KINDS)} was expected"
            )
        if kind not in _KINDS:
            raise TypeError(f"Unknown storage type {kind!r}: one of {', '.join(_KINDS)} was expected")
        if kind == "shared_fs":
            return DirectoryDestination(_shared_directory(storage, container_path) / sync_path)
    parsed = parse_storage(storage)
    if isinstance(parsed, DirectoryStorage):
        return DirectoryDestination(parsed.path / sync_path)
    prefix = "/".join(filter(None, [parsed.prefix, sync_path.as_posix()]))
    return BucketDestination(open_bucket(parsed), prefix)


def _shared_directory(storage: Mapping[str, Any], container_path: str | None) -> Path:
    host = storage.get("host_path")
    if not isinstance(host, str) or not Path(host).is_absolute():
        raise ValueError(f"host_path of checkpoint_storage is {host!r}; an absolute path was expected")
    base = Path(container_path or host)
    below = storage.get("storage_path")
    if not below:
        return base
    relative = Path(below).relative_to(host) if Path(below).is_absolute() else Path(below)
    if ".." in relative.parts:
        raise ValueError(f"storage_path {below!r} of checkpoint_storage must not lead out of host_path")
    return base / relative
