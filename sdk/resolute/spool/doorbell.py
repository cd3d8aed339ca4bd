"""Wakes the sender of a spool from another process, by a named pipe beside the spools.

A sender polls its spools a few times a second. A commit waits until earlier reports have arrived, and would
have to wait for the next poll; so the writer wakes the sender.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path

_NAME = "doorbell"
_ALL = 1 << 16
"""Bytes that a pipe holds."""


class Doorbell:
    """The receiving end: an event that other processes can set, by ``ring``.

    On a file system without named pipes, only threads of this process can set it.

    Args:
        directory: Directory of the spools.
    """

    def __init__(self, directory: Path) -> None:
        self._reader, self._writer = _named_pipe(directory / _NAME)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)

    def wait(self, timeout: float) -> object:
        """Sleeps until a process rings, for at most ``timeout`` seconds."""
        return self._poll.poll(timeout * 1000.0)

    def set(self) -> None:
        """Rings from within this process."""
        _write(self._writer)

    def clear(self) -> None:
        """Forgets that a process has rung."""
        with contextlib.suppress(OSError):
            os.read(self._reader, _ALL)

    def close(self) -> None:
        """Closes it when nothing waits for it any more; ringing then has no effect."""
        ends = {self._reader, self._writer}
        self._reader = self._writer = -1
        for end in ends:
            os.close(end)


def ring(directory: Path) -> None:
    """Wakes the sender of a directory, if there is one; else it finds by itself what waits."""
    try:
        pipe = os.open(directory / _NAME, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _write(pipe)
    finally:
        os.close(pipe)


def _named_pipe(path: Path) -> tuple[int, int]:
    """Opens a named pipe for reading and writing, or else one without a name."""
    try:
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
        # One descriptor for both directions, so that it does not end with its last writer.
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    return pipe, pipe


def _write(pipe: int) -> None:
    # A full pipe wakes as well, and one without a reader has no process to wake.
    with contextlib.suppress(OSError):
        os.write(pipe, b"\0")
