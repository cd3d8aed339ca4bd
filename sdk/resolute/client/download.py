"""Fetching the files of a checkpoint: a directory of its own, complete once ``metadata.json`` is in it.

Files are fetched one by one into place under temporary names, and a repeated download skips those that are
there already, so an interrupted one goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import urlsplit

from resolute.client.records import CheckpointRecord, DirectoryStorage, FileRecord
from resolute.client.remote.checkpoints import Checkpoints
from resolute.client.states import CheckpointState
from resolute.digests import hash_of
from resolute.disk import naming_full_disk
from resolute.errors import DataLossError, FailedPreconditionError, NotFoundError, UnavailableError
from resolute.file_cache import FileCache
from resolute.progress import UNWATCHED, Progress, counted

METADATA_FILE = "metadata.json"
"""Written last: a directory that has it is complete."""
_PIECE = 1 << 20
_HTTP_TIMEOUT = 60.0
_CONNECT_TIMEOUT = 3.0
_URLS_AT_ONCE = 250
"""Of the longest names there are, so many URLs fit a message."""


class DownloadMode(Enum):
    """Which way the bytes of a checkpoint come."""

    DIRECT = "direct"
    """From the store itself."""
    MASTER = "master"
    """Through the checkpoints service."""
    AUTO = "auto"
    """From the store if it can be reached, else through the service."""


class Source(Protocol):
    """Gives the bytes of a checkpoint's files."""

    def read(self, path: str, offset: int) -> Iterator[bytes]:
        """Yields the bytes of one file from ``offset`` on."""


def download(
    checkpoint: CheckpointRecord,
    destination: Path,
    *,
    registry: Checkpoints,
    mode: DownloadMode = DownloadMode.AUTO,
    progress: Progress = UNWATCHED,
) -> Path:
    """Fetches a checkpoint into a directory; does nothing when it is complete there already.

    Files that the cache of this machine has, if it has one, are taken from there, and others put there.

    Args:
        checkpoint: The checkpoint.
        destination: The directory; made if missing.
        registry: The checkpoints service.
        mode: Which way the bytes come.
        progress: Counts the bytes of files that are there.

    Raises:
        FailedPreconditionError: The checkpoint is not committed, or the store cannot be reached directly when
            ``mode`` wants that.
        DataLossError: Fetched bytes do not match their digest, or a path leads outside.
        InvalidArgumentError: The variables of the machine's cache are wrong.
        QuotaError: The disk is full.
        UnavailableError: The service, or the store, cannot be reached.
    """
    if (destination / METADATA_FILE).exists():
        return destination
    if checkpoint.state not in {CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED}:
        raise FailedPreconditionError(
            f"checkpoint {checkpoint.uuid} is {checkpoint.state.value}; only committed ones can be downloaded"
        )
    source = choose_source(checkpoint, registry, mode)
    cache = _cache_for(checkpoint, source)
    fetching = _Fetching(source, cache=cache, progress=progress)
    destination.mkdir(parents=True, exist_ok=True)
    last = None
    with cache.turn(checkpoint.uuid) if cache else contextlib.nullcontext():
        for file in checkpoint.files:
            path = _inside(destination, file.path, checkpoint.uuid)
            if file.path == METADATA_FILE:
                last = file
            elif file.path.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
            else:
                fetching.fetch(file, path)
        if last is not None:
            fetching.fetch(last, destination / METADATA_FILE)
        else:
            write_metadata(checkpoint, destination / METADATA_FILE)
        fetching.keep()
    return destination


def write_metadata(checkpoint: CheckpointRecord, path: Path) -> None:
    """Writes a checkpoint's metadata as JSON."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(checkpoint.metadata, indent=2) + "\n")
    partial.replace(path)


def _inside(destination: Path, path: str, uuid: str) -> Path:
    parts = PurePosixPath(path)
    if not path.strip("/") or parts.is_absolute() or ".." in parts.parts or "\0" in path:
        raise DataLossError(f"checkpoint {uuid} has a file {path!r} outside of it; it was not downloaded")
    target = destination / parts
    # What lies in the destination already may be links that lead elsewhere.
    if not target.parent.resolve().is_relative_to(destination.resolve()):
        raise DataLossError(f"{target} leads outside of {destination}; download into an empty directory")
    return target


class _Fetching:
    """Brings files to their places, from the nearest place that has them."""

    def __init__(self, source: Source, *, cache: FileCache | None, progress: Progress) -> None:
        self._source = source
        self._cache = cache
        self._progress = progress
        self._fetched: list[tuple[str, Path]] = []

    def keep(self) -> None:
        """Keeps for others of this machine what came from the store."""
        if self._cache is not None:
            self._cache.keep(self._fetched)

    def fetch(self, file: FileRecord, path: Path) -> None:
        """Brings a file to its place, unless it is there."""
        if path.is_file() and path.stat().st_size == file.size and _matches(path, file.digest):
            self._progress.advance(file.size)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        with naming_full_disk(f"write {path}", remedy="free some space and download again: it goes on here"):
            if self._taken(file, partial):
                self._progress.advance(file.size)
            else:
                self._receive(file, partial)
                self._fetched.append((file.digest, path))
        partial.replace(path)

    def _taken(self, file: FileRecord, partial: Path) -> bool:
        # What an interrupted download has left is worth more than a look into the cache.
        if self._cache is None or partial.exists():
            return False
        if self._cache.take(file.digest, partial):
            return True
        partial.unlink(missing_ok=True)
        return False

    def _receive(self, file: FileRecord, partial: Path) -> None:
        have = partial.stat().st_size if partial.is_file() else 0
        if have > file.size:
            have = 0
        with counted(self._progress) as count:
            with partial.open("r+b" if have else "wb") as output:
                count(output.seek(have))
                for piece in self._source.read(file.path, have):
                    count(output.write(piece))
            size = partial.stat().st_size
            if size != file.size or not _matches(partial, file.digest):
                partial.unlink()
                raise DataLossError(
                    f"{file.path} arrived with {size} of {file.size} bytes, or with other content than its "
                    f"digest {file.digest or 'says'}; try again, and if it stays so the stored file is "
                    "damaged"
                )


def _matches(path: Path, digest: str) -> bool:
    computed = hash_of(digest)
    if computed is None:
        return True
    with path.open("rb") as content:
        while piece := content.read(_PIECE):
            computed.update(piece)
    return computed.hexdigest() == digest.partition(":")[2]


def _cache_for(checkpoint: CheckpointRecord, source: Source) -> FileCache | None:
    """Gives the cache of this machine, if it has one that is of use for a checkpoint."""
    cache = None if isinstance(source, _FromDirectory) else FileCache.from_environment()
    return cache if cache is not None and checkpoint.total_size <= cache.limit else None


def choose_source(checkpoint: CheckpointRecord, registry: Checkpoints, mode: DownloadMode) -> Source:
    """Finds the way to the bytes of a checkpoint.

    Raises:
        FailedPreconditionError: The store cannot be reached directly, and ``mode`` wants that.
    """
    if mode is not DownloadMode.MASTER:
        direct = _direct(checkpoint, registry)
        if direct is not None:
            return direct
        if mode is DownloadMode.DIRECT:
            raise FailedPreconditionError(
                f"checkpoint {checkpoint.uuid} lies in {checkpoint.storage}, which cannot be reached "
                "from here; download it through the service (mode master)"
            )
    return _ThroughService(checkpoint.uuid, registry)


def _direct(checkpoint: CheckpointRecord, registry: Checkpoints) -> Source | None:
    if isinstance(checkpoint.storage, DirectoryStorage):
        directory = Path(checkpoint.storage.path) / checkpoint.uuid
        with contextlib.suppress(OSError):
            next(directory.iterdir(), None)
            return _FromDirectory(directory)
        return None
    files = [file.path for file in checkpoint.files if not file.path.endswith("/")]
    urls: dict[str, str] = {}
    for start in range(0, len(files), _URLS_AT_ONCE):
        found = registry.presigned(checkpoint.uuid, files[start : start + _URLS_AT_ONCE])
        urls.update((item.path, item.url) for item in found)
        if not start and (not urls or not _reachable(next(iter(urls.values())))):
            return None
    return _FromUrls(urls) if urls else None


def _reachable(url: str) -> bool:
    """Whether somebody listens where a URL leads: the store may be known inside of the cluster only."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with (
        contextlib.suppress(OSError),
        socket.create_connection((parts.hostname or "", port), _CONNECT_TIMEOUT),
    ):
        return True
    return False


class _ThroughService:
    def __init__(self, uuid: str, registry: Checkpoints) -> None:
        self._uuid = uuid
        self._registry = registry

    def read(self, path: str, offset: int) -> Iterator[bytes]:
        return self._registry.read(self._uuid, path, offset=offset)


class _FromDirectory:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, path: str, offset: int) -> Iterator[bytes]:
        try:
            with (self._directory / path).open("rb") as content:
                content.seek(offset)
                while piece := content.read(_PIECE):
                    yield piece
        except FileNotFoundError as error:
            raise NotFoundError(f"{self._directory / path} is gone from the store") from error


class _FromUrls:
    def __init__(self, urls: dict[str, str]) -> None:
        self._urls = urls

    def read(self, path: str, offset: int) -> Iterator[bytes]:
        if path not in self._urls:
            raise NotFoundError(f"the store gave no URL for {path}")
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        request = urllib.request.Request(self._urls[path], headers=headers)  # noqa: S310 - the service made the URL
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_TIMEOUT) as response:  # noqa: S310
                if offset and response.status != 206 and "Content-Range" not in response.headers:
                    response.read(offset)  # a store without ranges sends the whole file
                while piece := response.read(_PIECE):
                    yield piece
        except (urllib.error.URLError, TimeoutError) as error:
            raise UnavailableError(f"cannot fetch {path} from the store: {error}; try again") from error
