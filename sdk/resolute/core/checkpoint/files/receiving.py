"""Receives files of a checkpoint from a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from resolute.contracts.files.digests import PREFERRED
from resolute.core.checkpoint.files.manifest import FileEntry, algorithms_of, make_directories
from resolute.core.checkpoint.files.progress_log import ProgressFactory
from resolute.errors import NotFoundError
from resolute.transfer.disk import full_disk_errors
from resolute.transfer.receiver import FileReceiver
from resolute.transfer.sources import FileSource
from resolute.transfer.workers import Cancellation, map_in_threads
from resolute.trial_errors import CheckpointNotFound


def receive_files(
    source: FileSource,
    target: Path,
    paths: Iterable[str],
    *,
    expected: Sequence[FileEntry],
    name: str,
    watch: ProgressFactory,
    stop: Cancellation,
) -> list[FileEntry]:
    """Receives files, several at once, hashed on the way.

    Args:
        source: Where they come from.
        target: The directory that they go to.
        paths: The files, and directories that are made.
        expected: What was committed of them.
        name: Names the checkpoint in messages.
        watch: Makes what counts the bytes.
        stop: Set by the first failure.

    Raises:
        CheckpointNotFound: A file is not there.
        QuotaError: The disk of ``target`` is full.
        UnavailableError: The store was away for too long.
    """
    wanted = list(paths)
    make_directories(target, wanted)
    files = [path for path in wanted if not path.endswith("/")]
    sizes = {entry.path: entry.size for entry in expected}
    algorithms = algorithms_of(expected)
    progress = watch(f"{name} is downloaded", sum(sizes.get(path, 0) for path in files))
    with (
        full_disk_errors(f"copy {name} to {target}", remedy="free some space and repeat"),
        FileReceiver(source, progress=progress, stop=stop) as receiver,
    ):

        def receive(path: str) -> FileEntry:
            algorithm = algorithms.get(path, PREFERRED)
            entry = receiver.receive(path, target / path, size=sizes.get(path, 0), algorithm=algorithm)
            return FileEntry(path, entry.size, entry.digest)

        try:
            return map_in_threads(receive, files, stop=stop)
        except NotFoundError as failure:
            raise CheckpointNotFound(
                f"a file of {name} is gone: {failure}; restore from another checkpoint"
            ) from failure
