"""Limits the size of a supervisor's log: a run may last for months, and log a line at every failed call."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path

MOST_BYTES = 4 * 1024 * 1024
"""Size at which the log begins again; the one before is kept beside it."""


class BoundedLogHandler(logging.Handler):
    """Writes to the standard error, and truncates its file when the file has become large.

    Args:
        path: The file to which standard output and standard error of this process are appended, if any.
        most_bytes: Its largest size.
    """

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        super().__init__()
        self._path = path
        self._most_bytes = most_bytes

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a line."""
        # A run outlives a full disk, and so must its log.
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
            written = os.fstat(sys.stderr.fileno())
            if written.st_size > self._most_bytes and os.path.samestat(written, self._path.stat()):
                self._begin_again()

    def _begin_again(self) -> None:
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        log = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # The libraries of this process write there too.
            os.dup2(log, sys.stdout.fileno())
            os.dup2(log, sys.stderr.fileno())
        finally:
            os.close(log)
