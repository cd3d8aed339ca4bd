"""Memory-mapped files, whose disk space is reserved first."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from resolute.errors import QuotaError

_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def map_file(path: Path, size: int, *, create: bool) -> mmap.mmap:
    """Maps the first bytes of a file for reading and writing, shared with all processes that map it.

    The blocks of the file are allocated before it is mapped: on a full disk, access to a page without a block
    ends the process by SIGBUS, even if it only reads.

    Args:
        path: The file.
        size: Bytes to map. A shorter file is extended with zeros; what is there stays.
        create: Whether to create the file if it is missing.

    Raises:
        FileNotFoundError: The file is missing and not to be created.
        QuotaError: The disk is full.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    try:
        _allocate(descriptor, size)
        return mmap.mmap(descriptor, size)
    except OSError as failure:
        if failure.errno not in _NO_SPACE:
            raise
        reason = os.strerror(failure.errno)
        raise QuotaError(
            f"cannot reserve {size} bytes for {path}: {reason}; free some space there"
        ) from failure
    finally:
        os.close(descriptor)


def _allocate(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as failure:
        if failure.errno not in _UNSUPPORTED:
            raise
        _fill(descriptor, size)


def _fill(descriptor: int, size: int) -> None:
    """Extends a file with zeros, for file systems on which blocks cannot be allocated otherwise."""
    while (present := os.fstat(descriptor).st_size) < size:
        os.pwrite(descriptor, bytes(size - present), present)
