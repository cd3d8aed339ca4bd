"""Checks and unpacks model definitions: archives from untrusted users.

An archive is a gzipped tar. It may contain regular files, directories, and links that stay inside it. Any
other entry is refused by its name, before or during unpacking. Nothing is ever written outside the
destination.
"""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from resolute.contracts.files.file_names import length_problem, shortened
from resolute.errors import DataLossError, InvalidArgumentError, QuotaError

_COPY_BYTES = 1 << 20
_HEADER_ALLOWANCE = 4096
"""Bytes of the tar that an entry may take beside its content: headers, long names, padding."""
_LATEST_TIME = 2**33
"""Seconds since 1970 that every file system can keep."""
_MAX_HEADERS_BYTES = 64 << 10
"""Most bytes of all headers of an entry, which are held in memory: long names, holes of sparse files."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """The limits of an unpacked archive, so that a small upload cannot fill a disk."""

    max_bytes: int = 4 << 30
    """Bytes of all files together."""
    max_entries: int = 200_000
    """Files, directories and links."""


DEFAULT_LIMITS = ArchiveLimits()
"""Far above what code needs; data belongs elsewhere."""


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """The number and the total size of an archive's files."""

    entries: int
    """Files, directories and links."""
    size: int
    """Bytes of all files together."""
    names: frozenset[str] = frozenset()
    """The paths of the entries."""


class _Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int = -1, /) -> bytes: ...


def check_archive(stream: IO[bytes], *, limits: ArchiveLimits = DEFAULT_LIMITS) -> ArchiveSummary:
    """Reads an archive to its end without writing anything.

    Links are checked by what they say; ``extract_archive`` also checks where they lead once all is in place.

    Raises:
        InvalidArgumentError: An entry is absolute, climbs out, is a device, or links to the outside.
        QuotaError: It holds more than the limits allow.
        DataLossError: It is no gzipped tar, or it is cut off.
    """
    entries = size = 0
    with _opened(stream, limits) as opened:
        names = set()
        for member, path in _checked_members(opened, limits):
            entries += 1
            size += member.size if member.isreg() else 0
            names.add(path.as_posix())
    return ArchiveSummary(entries=entries, size=size, names=frozenset(names))


def extract_archive(
    stream: IO[bytes],
    destination: Path,
    *,
    limits: ArchiveLimits = DEFAULT_LIMITS,
    interrupted: Callable[[], bool] = lambda: False,
) -> ArchiveSummary:
    """Unpacks an archive into a directory.

    Args:
        stream: The gzipped tar.
        destination: A directory that is empty or not there.
        limits: What the archive may hold.
        interrupted: Asked between entries; once true, unpacking stops with ``InterruptedError``.

    Returns:
        What was unpacked.

    Raises:
        InvalidArgumentError: As ``check_archive``, or two entries claim the same path as different things.
        QuotaError: It holds more than the limits allow, or the disk is full.
        DataLossError: It is no gzipped tar, or it is cut off.
        FileExistsError: The destination holds something.
        InterruptedError: ``interrupted`` returned True.
    """
    destination.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(destination.iterdir()):
        raise FileExistsError(f"{destination} is not empty; archives are unpacked into empty directories")
    unpacking = _Unpacking(destination)
    try:
        with _opened(stream, limits) as opened:
            for member, parts in _checked_members(opened, limits):
                if interrupted():
                    raise InterruptedError(f"unpacking into {destination} was interrupted")
                unpacking.add(opened.archive, member, parts)
        unpacking.finish()
    except OSError as failure:
        if failure.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise QuotaError(
                f"cannot unpack into {destination}: {failure.strerror}; free some space"
            ) from failure
        raise
    return ArchiveSummary(entries=unpacking.entries, size=unpacking.size)


class _Unpacking:
    """The unpacking of an archive into a directory.

    Links are created last. So while files are written there is no link that could lead outside.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._directories: dict[PurePosixPath, int] = {}
        self._links: dict[PurePosixPath, str] = {}
        self.entries = 0
        self.size = 0

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: PurePosixPath) -> None:
        """Takes one entry."""
        self.entries += 1
        self._need_directory(path.parent)
        if member.isdir():
            self._need_directory(path)
            self._directories[path] = member.mode
        elif member.issym():
            self._refuse_taken(path)
            self._links[path] = member.linkname
        elif member.islnk():
            self._link(path, PurePosixPath(member.linkname))
        else:
            self._write(archive, member, path)

    def finish(self) -> None:
        """Makes the links, checks where they lead, and gives the directories their permissions."""
        for path, target in self._links.items():
            self._refuse_taken(path)
            (self._root / path).symlink_to(target)
        root = os.path.realpath(self._root)
        for path, target in self._links.items():
            leads_to = os.path.realpath(self._root / path)
            if os.path.commonpath([root, leads_to]) != root:
                # What has been made by now could be followed by anyone who looks in: take it away again.
                for link in self._links:
                    (self._root / link).unlink(missing_ok=True)
                raise _outside(path, target)
        for path, mode in self._directories.items():
            (self._root / path).chmod(mode & 0o777 | 0o700)

    def _need_directory(self, path: PurePosixPath) -> None:
        if path in self._directories or not path.parts:
            return
        self._need_directory(path.parent)
        if path in self._links:
            raise _taken_twice(path)
        try:
            (self._root / path).mkdir(mode=0o700)
        except FileExistsError:
            raise _taken_twice(path) from None
        self._directories[path] = 0o755

    def _refuse_taken(self, path: PurePosixPath) -> None:
        if os.path.lexists(self._root / path):
            raise _taken_twice(path)

    def _link(self, path: PurePosixPath, target: PurePosixPath) -> None:
        self._refuse_taken(path)
        source = self._root / target
        if not source.is_file():
            raise InvalidArgumentError(
                f"the model definition has a hard link {str(path)!r} to {str(target)!r}, no earlier file"
            )
        os.link(source, self._root / path, follow_symlinks=False)

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: PurePosixPath) -> None:
        if path in self._directories or path in self._links:
            raise _taken_twice(path)
        target = self._root / path
        # The last of several files with one name counts, as in every tar; hard links to earlier ones stay.
        target.unlink(missing_ok=True)
        source = archive.extractfile(member)
        assert source is not None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(target, flags, member.mode & 0o777 | 0o600)
        with source, os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(source, file, _COPY_BYTES)
            file.flush()
            # A header can claim any number, also one that is no time.
            modified = member.mtime if 0 <= member.mtime <= _LATEST_TIME else 0
            os.utime(file.fileno(), (modified, modified))
        self.size += member.size


def _checked_members(
    opened: _Opened, limits: ArchiveLimits
) -> Iterator[tuple[tarfile.TarInfo, PurePosixPath]]:
    entries = size = 0
    for member in opened.archive:
        path = _checked_path(member)
        opened.stream.expect(member.size if member.isreg() else 0)
        if path is None:
            continue
        entries += 1
        size += member.size if member.isreg() else 0
        if entries > limits.max_entries:
            raise QuotaError(
                f"the model definition holds more than {limits.max_entries} entries; "
                "leave data and build results out of it with a .detignore file"
            )
        if size > limits.max_bytes:
            raise _too_large(limits)
        yield member, path


def _checked_path(member: tarfile.TarInfo) -> PurePosixPath | None:
    """Returns where an entry goes, None for the root itself."""
    name = member.name
    _check_length(name, what="an entry")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise InvalidArgumentError(
            f"the model definition has an entry {name!r} outside of it; pack relative paths without '..'"
        )
    if not path.parts:
        if not member.isdir():
            raise InvalidArgumentError(f"the model definition has an entry without a name ({name!r})")
        return None
    if member.issym() or member.islnk():
        _check_length(member.linkname, what=f"a link {str(path)!r} to")
    if member.issym():
        _check_link(path, member.linkname)
    elif member.islnk():
        target = PurePosixPath(member.linkname)
        if target.is_absolute() or ".." in target.parts or not target.parts:
            raise _outside(path, member.linkname)
    elif member.issparse():
        raise InvalidArgumentError(
            "the model definition has a sparse file, whose list of holes may take any size; "
            "pack it without --sparse"
        )
    elif not (member.isreg() or member.isdir()):
        raise InvalidArgumentError(
            f"the model definition has an entry {name!r} that is a device or a pipe; "
            "only files, directories and links can be submitted"
        )
    return path


def _check_length(name: str, *, what: str) -> None:
    problem = length_problem(name)
    if problem:
        raise InvalidArgumentError(f"the model definition has {what} {shortened(name)}, which {problem}")


def _check_link(path: PurePosixPath, target: str) -> None:
    joined = os.path.normpath(os.path.join(path.parent, target))  # noqa: PTH118  # pathlib cannot collapse ".."
    if not target or "\0" in target or os.path.isabs(target) or joined.split("/")[0] == "..":  # noqa: PTH117
        raise _outside(path, target)


def _outside(path: PurePosixPath, target: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the model definition has a link {str(path)!r} to {target!r}, outside of it; copy the file instead"
    )


def _taken_twice(path: PurePosixPath) -> InvalidArgumentError:
    return InvalidArgumentError(f"the model definition has two different entries named {str(path)!r}")


def _too_large(limits: ArchiveLimits) -> QuotaError:
    return QuotaError(
        f"the model definition unpacks to more than {limits.max_bytes} bytes; "
        "leave data out of it with a .detignore file"
    )


class _Bounded:
    """A stream that fails after some number of bytes, whatever sizes the headers claim."""

    def __init__(self, source: _Readable, limits: ArchiveLimits) -> None:
        self._source = source
        self._limits = limits
        self._left = limits.max_bytes + (limits.max_entries + 1) * _HEADER_ALLOWANCE
        self.expect(0)

    def read(self, size: int = -1, /) -> bytes:
        data = self._source.read(size)
        self._left -= len(data)
        self._left_of_entry -= len(data)
        if self._left < 0:
            raise _too_large(self._limits)
        if self._left_of_entry < 0:
            raise InvalidArgumentError(
                f"the model definition has an entry with more than {_MAX_HEADERS_BYTES} bytes of headers; "
                "use shorter names, and pack it without --sparse"
            )
        return data

    def expect(self, content: int) -> None:
        """Lets the content of an entry be read, and the headers of the next one.

        Args:
            content: Its bytes. They are padded, and read in whole records.
        """
        self._left_of_entry = content + _MAX_HEADERS_BYTES + 2 * tarfile.RECORDSIZE


@dataclass(frozen=True, slots=True)
class _Opened:
    archive: tarfile.TarFile
    stream: _Bounded


@contextmanager
def _opened(stream: IO[bytes], limits: ArchiveLimits) -> Iterator[_Opened]:
    try:
        with gzip.GzipFile(fileobj=stream, mode="rb") as plain:
            bounded = _Bounded(plain, limits)
            with tarfile.open(fileobj=bounded, mode="r|") as archive:  # type: ignore[call-overload]
                yield _Opened(archive, bounded)
            # Reading to the end makes gzip compare its checksum.
            bounded.expect(limits.max_bytes)
            while bounded.read(_COPY_BYTES):
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError) as failure:
        raise DataLossError(
            f"the model definition is not a whole gzipped tar archive ({failure}); submit it again"
        ) from failure
