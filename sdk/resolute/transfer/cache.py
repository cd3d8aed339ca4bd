"""The machine's cache of files by digest, so that each file is downloaded once.

::

    <directory>/3f/blake3-3f0c…   a whole file; its time of change says when it was used last
    <directory>/incoming/         files on their way in
    <directory>/locks/            held by anyone who fetches a checkpoint, or makes room
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import BinaryIO, final

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.files.digests import format_digest, new_hash
from resolute.errors import InvalidArgumentError

DIRECTORY_VARIABLE = "RESOLUTE_CHECKPOINT_CACHE_DIR"
"""Names the directory; without it nothing is kept."""
LIMIT_VARIABLE = "RESOLUTE_CHECKPOINT_CACHE_BYTES"
"""The most bytes that are kept."""
DEFAULT_LIMIT = 100 << 30
_DIGEST = re.compile(r"([a-z0-9_]+):([0-9a-f]{32,128})")
_BLOCK_BYTES = 1 << 18
_LOCKS = 64
_POLL_SECONDS = 0.05
_LOCK_TIMEOUT_SECONDS = 3600.0
"""A lock that is held longer is passed by: it only saves work."""
_STALE_SECONDS = 86_400.0
"""Age at which a file on its way in has no owner any more."""
_log = logging.getLogger("resolute.core")


@final
class FileCache:
    """A directory of files by their digests, used by every process of a machine at once.

    A file is verified against its digest when it is read; a damaged file is dropped. If the cache cannot be
    read or written, transfers only take longer.

    Args:
        directory: The directory. If it is missing, it is created with permissions for its owner only.
        limit: Most bytes of all files. The least recently used files are removed first.
        clock: Clock for the last use of a file.
    """

    def __init__(self, directory: Path, *, limit: int = DEFAULT_LIMIT, clock: Clock = SYSTEM_CLOCK) -> None:
        self.limit = limit
        self._directory = directory
        self._incoming = directory / "incoming"
        self._locks = directory / "locks"
        self._clock = clock

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> FileCache | None:
        """Returns the cache of this machine; None where there is to be none.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        directory = variables.get(DIRECTORY_VARIABLE, "")
        if not directory:
            return None
        if not Path(directory).is_absolute():
            raise InvalidArgumentError(
                f"{DIRECTORY_VARIABLE} is {directory!r}; give the absolute path of a local directory"
            )
        text = variables.get(LIMIT_VARIABLE, "") or str(DEFAULT_LIMIT)
        if not text.isdecimal() or not int(text):
            raise InvalidArgumentError(f"{LIMIT_VARIABLE} is {text!r}; give a number of bytes above 0")
        return cls(Path(directory), limit=int(text))

    def take(self, digest: str, target: Path) -> bool:
        """Copies a file out, and compares it with its digest on the way.

        Args:
            digest: What is wanted.
            target: Where to; the directory must be there.

        Returns:
            Whether it was there, and as it should be; if not, ``target`` may hold some bytes.
        """
        held = self._path(digest)
        if held is None:
            return False
        try:
            reader = held.open("rb", buffering=0)
        except OSError:
            return False
        with reader, target.open("wb") as output:
            try:
                actual = _copied(reader, output, algorithm=digest.partition(":")[0])
            except _UnreadableError as failure:
                actual = f"nothing that can be read ({failure.__cause__})"
        if actual != digest:
            _log.warning("%s of the checkpoint cache is damaged: it is fetched again", held)
            with contextlib.suppress(OSError):
                held.unlink()
            return False
        now = self._clock.time()
        with contextlib.suppress(OSError):
            os.utime(held, (now, now))
        return True

    def keep(self, files: Iterable[tuple[str, Path]]) -> None:
        """Keeps copies of files, and drops others if there is no room.

        Args:
            files: Digests, and where the files are.
        """
        try:
            self._make_directories()
            with self._locked("room"):
                index = self._read_index()
                for digest, source in files:
                    self._keep_one(digest, source, index)
        except OSError as failure:
            _log.warning("the checkpoint cache %s keeps nothing now: %s", self._directory, failure)

    @contextlib.contextmanager
    def fetch_lock(self, name: str) -> Iterator[None]:
        """Waits until no other process of this machine fetches what has this name.

        Args:
            name: What is fetched.
        """
        with contextlib.ExitStack() as stack:
            try:
                self._make_directories()
                # A few files for all names, of which there is no end; two that share one take turns.
                stack.enter_context(self._locked(str(zlib.crc32(name.encode()) % _LOCKS)))
            except OSError as failure:
                _log.warning("the checkpoint cache %s cannot be used: %s", self._directory, failure)
            yield

    def _path(self, digest: str) -> Path | None:
        match = _DIGEST.fullmatch(digest)
        return None if match is None else self._directory / match[2][:2] / f"{match[1]}-{match[2]}"

    def _make_directories(self) -> None:
        if not self._directory.is_dir():
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._incoming.mkdir(exist_ok=True)
        self._locks.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self._locks / name).open("ab") as file:
            deadline = time.monotonic() + _LOCK_TIMEOUT_SECONDS
            while not _try_to_lock(file.fileno()) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            yield

    def _read_index(self) -> _CacheIndex:
        """What there is, after a sweep of what was left half-copied."""
        oldest = self._clock.time() - _STALE_SECONDS
        for path in self._incoming.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)
        entries = []
        for path in self._directory.glob("??/*-*"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                entries.append((status.st_mtime_ns, path, status.st_size))
        return _CacheIndex({path: size for _, path, size in sorted(entries)}, limit=self.limit)

    def _keep_one(self, digest: str, source: Path, index: _CacheIndex) -> None:
        path, size = self._path(digest), source.stat().st_size
        if path is None or size > self.limit or not index.make_room(path, size):
            return
        path.parent.mkdir(exist_ok=True)
        incoming = self._incoming / f"{path.name}.{os.getpid()}"
        try:
            shutil.copyfile(source, incoming)
            now = self._clock.time()
            os.utime(incoming, (now, now))
            incoming.replace(path)
        except BaseException:
            incoming.unlink(missing_ok=True)
            raise


class _CacheIndex:
    """The files with their sizes, the least recently used first."""

    def __init__(self, sizes: dict[Path, int], *, limit: int) -> None:
        self._sizes = sizes
        self._total = sum(sizes.values())
        self._limit = limit

    def make_room(self, path: Path, size: int) -> bool:
        """Drops files until one more fits; says no if it is there already."""
        if path in self._sizes:
            return False
        while self._total + size > self._limit:
            oldest = next(iter(self._sizes))
            oldest.unlink(missing_ok=True)
            self._total -= self._sizes.pop(oldest)
        self._sizes[path] = size
        self._total += size
        return True


class _UnreadableError(Exception):
    """A kept file cannot be read."""


def _copied(reader: FileIO, output: BinaryIO, *, algorithm: str) -> str:
    """Copies a file and returns its digest."""
    summed = new_hash(algorithm)
    buffer = memoryview(bytearray(min(_BLOCK_BYTES, os.fstat(reader.fileno()).st_size + 1)))
    while True:
        try:
            count = reader.readinto(buffer)
        except OSError as failure:
            raise _UnreadableError from failure
        if not count:
            return format_digest(summed, algorithm)
        summed.update(buffer[:count])
        output.write(buffer[:count])


def _try_to_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
