"""Downloads the files of a checkpoint into a directory, which is complete once it has ``metadata.json``.

Each file is written under a temporary name and renamed when it is complete and verified. A repeated download
skips existing files, so an interrupted one continues where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from resolute.client.downloads.paths import DownloadPaths
from resolute.client.downloads.single_file import FileFetcher, is_intact
from resolute.client.downloads.sources import DownloadMode, open_source
from resolute.client.remote.checkpoints import Checkpoints
from resolute.client.schema.records import CheckpointRecord, FileRecord
from resolute.client.schema.states import CheckpointState
from resolute.errors import FailedPreconditionError
from resolute.transfer.cache import FileCache
from resolute.transfer.progress import NO_PROGRESS, Progress
from resolute.transfer.receiver import FileReceiver
from resolute.transfer.sources import FileSource
from resolute.transfer.workers import Cancellation, map_in_threads

METADATA_FILE = "metadata.json"
"""Written last: a directory that has it is complete."""
_NAMED_AT_MOST = 3


def download(
    checkpoint: CheckpointRecord,
    destination: Path,
    *,
    registry: Checkpoints,
    mode: DownloadMode = DownloadMode.AUTO,
    progress: Progress = NO_PROGRESS,
) -> Path:
    """Fetches a checkpoint into a directory; what is there already is compared and stays.

    Files that the cache of this machine has, if it has one, are taken from there, and others put there.

    Args:
        checkpoint: The checkpoint.
        destination: The directory; made if missing.
        registry: The checkpoints service.
        mode: Which way the bytes come.
        progress: Counts the bytes of files that are there.

    Raises:
        FailedPreconditionError: The checkpoint is not committed, the directory holds another one, or the
            store cannot be reached directly when ``mode`` wants that.
        DataLossError: Fetched bytes do not match their digest, or a path leads outside.
        InvalidArgumentError: The variables of the machine's cache are wrong.
        NotFoundError: A file is gone from its store.
        QuotaError: The disk is full.
        UnavailableError: The service, or the store, cannot be reached.
    """
    places, stop = DownloadPaths(destination, checkpoint), Cancellation()
    places.require_no_other_download()
    files = [file for file in checkpoint.files if not file.path.endswith("/")]
    missing = _missing(files, places, progress=progress, stop=stop)
    if (destination / METADATA_FILE).exists():
        if not missing:
            return destination
        _refuse_others(checkpoint, destination, missing=missing, places=places, of=len(files))
    if checkpoint.state not in {CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED}:
        raise FailedPreconditionError(
            f"checkpoint {checkpoint.uuid} is {checkpoint.state.name}; only committed ones can be downloaded"
        )
    with (
        open_source(checkpoint, registry, mode, sleep=stop.sleep) as source,
        FileReceiver(source, progress=progress, stop=stop) as receiver,
    ):
        cache = _cache_for(checkpoint, source)
        fetching = FileFetcher(receiver, places, cache=cache, progress=progress, stop=stop)
        _make_directories(checkpoint, places)
        with cache.fetch_lock(checkpoint.uuid) if cache else contextlib.nullcontext():
            map_in_threads(
                fetching.fetch, [file for file in missing if file.path != METADATA_FILE], stop=stop
            )
            _complete(checkpoint, destination, missing=missing, fetching=fetching)
            fetching.keep()
    shutil.rmtree(places.partials)
    return destination


def write_metadata(checkpoint: CheckpointRecord, path: Path) -> None:
    """Writes a checkpoint's metadata as JSON."""
    partial = path.with_name(f".{uuid.uuid4()}")
    partial.write_text(json.dumps(checkpoint.metadata, indent=2) + "\n")
    partial.replace(path)


def _missing(
    files: Sequence[FileRecord], places: DownloadPaths, *, progress: Progress, stop: Cancellation
) -> list[FileRecord]:
    """Compares what is there, and gives the files that are not."""

    def look(file: FileRecord) -> bool:
        is_there = is_intact(file, places.of(file.path), stop=stop)
        if is_there:
            progress.advance(file.size)
        return is_there

    there = map_in_threads(look, files, stop=stop)
    return [file for file, is_there in zip(files, there, strict=True) if not is_there]


def _refuse_others(
    checkpoint: CheckpointRecord,
    destination: Path,
    *,
    missing: Sequence[FileRecord],
    places: DownloadPaths,
    of: int,
) -> None:
    """Refuses a complete directory in which other files are in this one's places, or none of its own."""
    others = [file.path for file in missing if places.of(file.path).exists()]
    if not others and len(missing) < of:
        return
    named = ", ".join(others[:_NAMED_AT_MOST]) + (", ..." if len(others) > _NAMED_AT_MOST else "")
    raise FailedPreconditionError(
        f"{destination} holds another checkpoint than {checkpoint.uuid}, or files that were changed"
        f"{f' ({named})' if named else ''}; download into an empty directory, or remove this one"
    )


def _make_directories(checkpoint: CheckpointRecord, places: DownloadPaths) -> None:
    directories = {
        places.of(file.path) if file.path.endswith("/") else places.of(file.path).parent
        for file in checkpoint.files
    }
    for directory in sorted(directories | {places.partials}):
        directory.mkdir(parents=True, exist_ok=True)


def _complete(
    checkpoint: CheckpointRecord, destination: Path, *, missing: Sequence[FileRecord], fetching: FileFetcher
) -> None:
    """Puts the metadata there: everything else is."""
    listed = [file for file in missing if file.path == METADATA_FILE]
    for file in listed:
        fetching.fetch(file)
    if not listed and not (destination / METADATA_FILE).exists():
        write_metadata(checkpoint, destination / METADATA_FILE)


def _cache_for(checkpoint: CheckpointRecord, source: FileSource) -> FileCache | None:
    """Returns the cache of this machine, if it has one that is of use for a checkpoint."""
    cache = None if source.is_local else FileCache.from_environment()
    return cache if cache is not None and checkpoint.total_size <= cache.limit else None
