"""Downloads files from a source to this machine's disk, and hashes them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import final

from resolute.contracts.files.digests import Hash, format_digest, new_hash
from resolute.transfer.progress import Progress, count_attempt
from resolute.transfer.ranges import ParallelRanges, is_large
from resolute.transfer.sources import FileSource
from resolute.transfer.transport import BLOCK_BYTES, Sink
from resolute.transfer.workers import Cancellation


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A downloaded file."""

    size: int
    digest: str
    """Of its content, as ``algorithm:hex``; empty where none was asked for."""


@final
class FileReceiver:
    """Receives files of one source, in several threads. Use it as a context manager.

    Args:
        source: The source of the files.
        progress: Counts bytes.
        stop: Tells when to give up.
    """

    def __init__(self, source: FileSource, *, progress: Progress, stop: Cancellation) -> None:
        self._source = source
        self._progress = progress
        self._stop = stop
        self._ranges = ParallelRanges()

    def __enter__(self) -> FileReceiver:
        """Starts nothing yet."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Waits for the threads."""
        self._ranges.__exit__(*failure)

    def receive(
        self, path: str, target: Path, *, size: int, algorithm: str, resume: bool = False
    ) -> ReceivedFile:
        """Receives one file.

        Args:
            path: Its name in the source.
            target: Where it goes; the directory must be there.
            size: How many bytes it should have; where that is not known, zero.
            algorithm: Makes its digest; empty for none.
            resume: Whether bytes that are at ``target`` already are its first ones.

        Raises:
            NotFoundError: The source has no such file.
            UnavailableError: The source was away for too long.
            WorkCancelledError: The work is not wanted any more.
        """
        summed = new_hash(algorithm) if algorithm else None
        have = target.stat().st_size if resume and target.exists() else 0
        received = 0
        with count_attempt(self._progress) as count, target.open("r+b" if have else "wb") as output:

            def note(piece: bytes | memoryview) -> None:
                nonlocal received
                self._stop.check()
                if summed is not None:
                    summed.update(piece)
                received += len(piece)
                count(len(piece))

            def take(piece: bytes | memoryview) -> None:
                output.write(piece)
                note(piece)

            while received < have and (piece := output.read(BLOCK_BYTES)):
                note(piece)
            if not have or received < size:
                self._read(path, take, start=received, size=size)
        return ReceivedFile(received, _digest(summed, algorithm))

    def _read(self, path: str, take: Sink, *, start: int, size: int) -> None:
        if not self._source.parallel or not is_large(size - start):
            self._source.read(path, take, start=start)
            return

        def fetch(offset: int, count: int, fill: Sink) -> None:
            self._source.read(path, fill, start=offset, size=count)

        with contextlib.closing(self._ranges.blocks(start, size, fetch)) as blocks:
            for block in blocks:
                take(block)


def _digest(summed: Hash | None, algorithm: str) -> str:
    return "" if summed is None else format_digest(summed, algorithm)
