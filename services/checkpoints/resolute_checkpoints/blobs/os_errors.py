"""Turns errors of the operating system about files into the platform's errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resolute.errors import FailedPreconditionError, QuotaError, UnavailableError


@contextmanager
def file_system_errors(place: Path) -> Iterator[None]:
    """Converts errors of the file system into errors that name the path and a remedy.

    Raises:
        FailedPreconditionError: The service may not touch the files.
        QuotaError: The disk is full.
        UnavailableError: Anything else, which may pass.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise FailedPreconditionError(
                f"the checkpoints service may not work in {place} ({reason}); "
                "let its user read and write there"
            ) from error
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise QuotaError(f"the disk that holds {place} is full; free some space and repeat") from error
        raise UnavailableError(f"{place} does not answer ({reason}); try again") from error
