"""Reads regular files of a folder that other users can write to. Other kinds are errors; it never blocks."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""To open a pipe for reading waits for a writer, which may never come."""


def open_regular(path: Path) -> BinaryIO:
    """Opens a plain file for reading.

    Raises:
        OSError: It cannot be read, or is a link, a pipe or something else.
    """
    descriptor = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(descriptor, "rb")
