"""Checkpoints as subdirectories of one directory, to which trials write directly."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from resolute_checkpoints.blobs.base import Fault, FinishedUpload, OpenUpload, Upload, damaged, taken
from resolute_checkpoints.blobs.os_errors import file_system_errors
from resolute_checkpoints.blobs.verification import KnownDigests, can_compute
from resolute_checkpoints.domain.checkpoint import File

_ATTEMPTS = 3
_LEAST_ROOM = 1 << 20
"""Bytes that must be free where a checkpoint is begun; its size is not known by then."""
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_NO_WAY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG})
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe in the place of a file must not hang the service.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class DirectoryStore:
    """Stores checkpoints in subdirectories named by their UUIDs.

    Symbolic links are followed if they stay within their checkpoint.

    Args:
        root: The directory; absolute.
        known: Known digests of files.
    """

    def __init__(self, root: Path, *, known: KnownDigests | None = None) -> None:
        self._root = root
        self._known = known or KnownDigests()

    def require_free(self, checkpoint_id: str) -> None:
        """Checks that no directory has the checkpoint's name, and that the file system has space."""
        with file_system_errors(self._root):
            base = self._base(checkpoint_id)
            if os.path.lexists(base):
                raise taken(checkpoint_id, str(base))
            _require_room(base.parent)

    def upload_urls(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Upload]:
        """Raises an error: files are written in place."""
        raise FailedPreconditionError(
            f"checkpoint {checkpoint_id} lies in a directory; write its files to {self._root / checkpoint_id}"
        )

    def finish_uploads(self, checkpoint_id: str, uploads: Sequence[FinishedUpload]) -> None:
        """Raises an error if there are multipart uploads, which a directory does not support."""
        if uploads:
            raise InvalidArgumentError(
                f"checkpoint {checkpoint_id} lies in a directory, which takes no multipart uploads; "
                "commit without multiparts"
            )

    def drop_uploads(self, checkpoint_id: str, uploads: Sequence[OpenUpload]) -> None:
        """Does nothing: a directory has no multipart uploads."""

    def download_urls(self, checkpoint_id: str, paths: Sequence[str]) -> Sequence[str]:
        """Returns none: files are read in place, or through the service."""
        return ()

    def faults(self, checkpoint_id: str, files: Sequence[File]) -> Sequence[Fault]:
        """Returns the files that are missing, link out of the checkpoint, or have another size."""
        with file_system_errors(self._root):
            self._require_root()
            inspection = _Inspection(self._base(checkpoint_id))
            inspected = (inspection.fault(file) for file in files)
            return [fault for fault in inspected if fault is not None]

    def damaged(
        self, checkpoint_id: str, files: Sequence[File], *, wanted: Callable[[], bool]
    ) -> Sequence[Fault]:
        """Reads files and returns those whose content differs from their digest."""
        return [
            Fault(file.path, "has another content than its digest says")
            for file in files
            if can_compute(file.digest) and self._digest(checkpoint_id, file, wanted) != file.digest
        ]

    def _digest(self, checkpoint_id: str, file: File, wanted: Callable[[], bool]) -> str:
        with self.open(checkpoint_id, file.path, offset=0) as stream, file_system_errors(self._root):
            algorithm = file.digest.partition(":")[0]
            return self._known.digest(stream.fileno(), algorithm, wanted=wanted)

    def open(self, checkpoint_id: str, path: str, *, offset: int) -> BinaryIO:
        """Opens one file at an offset."""
        with file_system_errors(self._root):
            self._require_root()
            base = self._base(checkpoint_id)
            real = os.path.realpath(base / path)
            # What realpath gives has no links in it, so none may appear while it is opened part by part.
            inside = _inside(base, real)
            if inside is None:
                raise damaged(checkpoint_id, path, "leads out of the checkpoint")
            try:
                descriptor = _open_file(base, inside)
            except OSError as error:
                if error.errno not in _NO_WAY:
                    raise
                raise damaged(checkpoint_id, path, "is not there") from error
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise damaged(checkpoint_id, path, "is not a plain file")
            stream = os.fdopen(descriptor, "rb")
            stream.seek(offset)
            return stream

    def remove(self, checkpoint_id: str, *, committed: bool, kept: Collection[str] = ()) -> None:
        """Removes the checkpoint's directory. Nothing has to be kept: shared bytes are links in each."""
        with file_system_errors(self._root):
            if not committed and not self._root.is_dir():
                return
            self._require_root()
            base = self._base(checkpoint_id)
            if base.is_symlink():
                base.unlink(missing_ok=True)
                return
            _remove_tree(base)

    def write_other(self, directory: str, name: str, content: bytes) -> None:
        """Writes a file atomically; the first one creates the storage's directory."""
        with file_system_errors(self._root):
            base = self._own_directory(directory)
            base.mkdir(parents=True, exist_ok=True)
            write_atomically(base / name, content, mode=0o640, sync=True)

    def remove_others(self, directory: str) -> None:
        """Removes a directory; none of its parents below the storage may be a link."""
        with file_system_errors(self._root):
            # Of a storage that is not mounted nothing is removed, whatever is not to be seen there.
            self._require_root()
            base = self._own_directory(directory)
            if base.exists():
                _remove_tree(base)

    def remove_files(self, checkpoint_id: str, paths: Sequence[str]) -> None:
        """Removes some files, then the directories among the paths that are empty."""
        with file_system_errors(self._root):
            self._require_root()
            base = self._base(checkpoint_id)
            # Longer paths first: a directory is empty only after what is in it is gone.
            for path in sorted(paths, key=len, reverse=True):
                _remove_entry(base, path)

    def _own_directory(self, directory: str) -> Path:
        base = self._base(directory)
        if os.path.realpath(base) != str(base):
            raise FailedPreconditionError(
                f"{base} is reached through a link, so that its files may not be the cluster's own; "
                "remove them by hand"
            )
        return base

    def _base(self, checkpoint_id: str) -> Path:
        return Path(os.path.realpath(self._root)) / checkpoint_id

    def _require_root(self) -> None:
        # An absent root is most often a file system that is not mounted: nothing must follow from it.
        if not self._root.is_dir():
            raise UnavailableError(
                f"{self._root} is not there on the machine of the checkpoints service; mount it, "
                "or make it again, empty, if its files are gone for good"
            )


class _Inspection:
    """The inspection of one checkpoint's files, which resolves each directory once."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._parents: dict[str, bool] = {}

    def fault(self, file: File) -> Fault | None:
        path = os.path.join(self._base, file.path.removesuffix("/"))  # noqa: PTH118 - called 100 000 times
        try:
            if not self._parent_inside(os.path.dirname(path)):  # noqa: PTH120
                return Fault(file.path, "leads out of the checkpoint")
            facts = os.lstat(path)
            if stat.S_ISLNK(facts.st_mode):
                if _inside(self._base, os.path.realpath(path)) is None:
                    return Fault(file.path, "leads out of the checkpoint")
                facts = os.stat(path)  # noqa: PTH116
        except OSError as error:
            if error.errno not in _NO_WAY:
                raise
            return Fault(file.path, "is not there")
        return _compare(file, facts)

    def _parent_inside(self, parent: str) -> bool:
        known = self._parents.get(parent)
        if known is None:
            known = _inside(self._base, os.path.realpath(parent)) is not None
            self._parents[parent] = known
        return known


def _compare(file: File, facts: os.stat_result) -> Fault | None:
    if file.is_directory:
        return None if stat.S_ISDIR(facts.st_mode) else Fault(file.path, "is not a directory")
    if not stat.S_ISREG(facts.st_mode):
        return Fault(file.path, "is not a plain file")
    if facts.st_size != file.size:
        return Fault(file.path, f"has {facts.st_size} bytes, not {file.size}")
    return None


def _inside(base: Path, real: str) -> tuple[str, ...] | None:
    """Returns the parts of a resolved path below ``base``; None if it is outside."""
    try:
        return Path(real).relative_to(base).parts
    except ValueError:
        return None


def _open_file(base: Path, parts: Sequence[str]) -> int:
    if not parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(base))
    with _parent(base, parts) as directory:
        return os.open(parts[-1], _FILE, dir_fd=directory)


@contextmanager
def _parent(base: Path, parts: Sequence[str]) -> Iterator[int]:
    """Opens the parent directory of a path, without following links."""
    directory = os.open(base, _DIRECTORY)
    try:
        for part in parts[:-1]:
            following = os.open(part, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = following
        yield directory
    finally:
        os.close(directory)


def _require_room(directory: Path) -> None:
    # The first checkpoint makes the directory itself.
    present = next(parent for parent in (directory, *directory.parents) if parent.is_dir())
    room = os.statvfs(present)
    if not room.f_blocks:
        # /proc and /sys, which take no files, and file systems over a network that know no size.
        _require_writable(present, directory)
        return
    # File systems without a table of files report that it holds none.
    if room.f_bavail * room.f_frsize < _LEAST_ROOM or (room.f_files and not room.f_favail):
        raise UnavailableError(
            f"the disk that holds {directory} is full; free some space there, and the checkpoint is begun"
        )


def _require_writable(present: Path, directory: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=present):
            pass
    except OSError as error:
        raise FailedPreconditionError(
            f"{directory} can hold no checkpoint: {present} takes no new files ({error.strerror}); name "
            "another directory"
        ) from error


def _remove_entry(base: Path, path: str) -> None:
    is_directory = path.endswith("/")
    parts = path.removesuffix("/").split("/")
    try:
        with _parent(base, parts) as directory:
            if is_directory:
                os.rmdir(parts[-1], dir_fd=directory)
            else:
                os.unlink(parts[-1], dir_fd=directory)
    except OSError as error:
        # Removed already, or reached through a link: what that leads to has a path of its own.
        if error.errno not in _NO_WAY and not (is_directory and error.errno in _NOT_EMPTY):
            raise


def _remove_tree(base: Path) -> None:
    for _ in range(_ATTEMPTS):
        try:
            # Others may remove the same tree: what they were faster with is no failure.
            if sys.version_info >= (3, 12):
                shutil.rmtree(base, onexc=lambda _, __, error: _tolerate_absence(error))
            else:
                shutil.rmtree(base, onerror=lambda _, __, facts: _tolerate_absence(facts[1]))
        except NotADirectoryError:
            base.unlink(missing_ok=True)
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise
        if not base.exists():
            return
    raise UnavailableError(f"{base} is being changed while it is removed; end what writes there")


def _tolerate_absence(error: BaseException) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
