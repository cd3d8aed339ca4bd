"""Downloads a single file of a checkpoint."""

from __future__ import annotations

from pathlib import Path

from resolute.client.downloads.paths import DownloadPaths
from resolute.client.schema.records import FileRecord
from resolute.contracts.files.digests import hasher_for
from resolute.errors import DataLossError
from resolute.transfer.cache import FileCache
from resolute.transfer.disk import full_disk_errors
from resolute.transfer.progress import Progress
from resolute.transfer.receiver import FileReceiver
from resolute.transfer.transport import BLOCK_BYTES
from resolute.transfer.workers import Cancellation


def is_intact(file: FileRecord, path: Path, *, stop: Cancellation) -> bool:
    """Whether a file is in its place, with the bytes that were committed."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    summed = hasher_for(file.digest)
    if summed is None:
        return True
    with path.open("rb") as content:
        while piece := content.read(BLOCK_BYTES):
            stop.check()
            summed.update(piece)
    return summed.hexdigest() == file.digest.partition(":")[2]


class FileFetcher:
    """Fetches files from the nearest place that has them. Several threads may use it.

    Args:
        receiver: Downloads the files that are not on this machine.
        places: Paths of the files.
        cache: The machine's cache; None if it has none.
        progress: Counts bytes.
        stop: Tells when to give up.
    """

    def __init__(
        self,
        receiver: FileReceiver,
        places: DownloadPaths,
        *,
        cache: FileCache | None,
        progress: Progress,
        stop: Cancellation,
    ) -> None:
        self._receiver = receiver
        self._places = places
        self._cache = cache
        self._progress = progress
        self._stop = stop
        self._fetched: list[tuple[str, Path]] = []

    def keep(self) -> None:
        """Keeps for others of this machine what came from the store."""
        if self._cache is not None:
            self._cache.keep(self._fetched)

    def fetch(self, file: FileRecord) -> None:
        """Brings a file to its place, whose directory is there.

        Raises:
            DataLossError: What came is not what was committed.
            QuotaError: The disk is full.
        """
        self._stop.check()
        path, partial = self._places.of(file.path), self._places.partial(file)
        with full_disk_errors(f"write {path}", remedy="free some space and download again: it goes on here"):
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
        """Receives what is still missing, and compares all of it with its digest."""
        algorithm = file.digest.partition(":")[0]
        received = self._receiver.receive(
            file.path, partial, size=file.size, algorithm=algorithm, resume=True
        )
        if received.size != file.size or received.digest != file.digest:
            partial.unlink()
            raise DataLossError(
                f"{file.path} arrived with {received.size} of {file.size} bytes, or with other content than "
                f"its digest {file.digest or 'says'}; try again, and if it stays so the stored "
                "file is damaged"
            )
