"""The error of a full disk, which names the directory."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resolute.errors import QuotaError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def full_disk_errors(what: str, *, remedy: str) -> Iterator[None]:
    """Turns the failure of a full disk into an error for people; other failures pass.

    Args:
        what: What could not be done, such as ``write model.pt``.
        remedy: What to do about it.

    Raises:
        QuotaError: The disk is full, or a quota on it.
    """
    try:
        yield
    except OSError as error:
        if not is_full_disk(error):
            raise
        raise QuotaError(f"cannot {what}: {error.strerror}; {remedy}") from error


def require_room(directory: Path, size: int, *, remedy: str) -> None:
    """Makes sure that the disk of a directory has room, or the disk that the directory would be made on.

    Raises:
        QuotaError: Less than ``size`` bytes are free.
    """
    present = next(parent for parent in (directory, *directory.parents) if parent.is_dir())
    free = shutil.disk_usage(present).free
    if free < size:
        raise QuotaError(
            f"the disk that holds {directory} is full: {free} bytes are free and {size} needed; {remedy}"
        )


def is_full_disk(error: OSError) -> bool:
    """Whether a failure says that there is no room."""
    return error.errno in _FULL
