"""Appends records to a spool in files of bounded size, with one system call for each record."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import uuid
from pathlib import Path

from resolute.contracts.spool.ack import AckFile
from resolute.contracts.spool.format import FILE_HEADER, MAX_PAYLOAD, RecordType, file_header, frame
from resolute.errors import ForkedProcessError, InvalidArgumentError, QuotaError

SEGMENT_BYTES = 64 << 20
"""Size at which a writer continues in a new file, so that files that have arrived can be removed."""
_NEW_SUFFIX = ".new"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Segment:
    """One file of a writer, which creates it.

    It gets its name when it can take records, so that no sender opens a file that a full disk left
    incomplete.

    Args:
        path: The file; its name must be unique.

    Raises:
        QuotaError: The disk is full. The file is removed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.refusals_seen = 0
        self.ended = False
        """Whether the file ends with an END record, so that nothing may follow."""
        new = path.with_suffix(_NEW_SUFFIX)
        with contextlib.ExitStack() as undo:
            undo.callback(AckFile.path_for(path).unlink, missing_ok=True)
            self.ack = AckFile.of(path)
            undo.callback(self.ack.close)
            self._file = _create(new)
            undo.callback(new.unlink)
            undo.callback(os.close, self._file)
            self.append(file_header())
            new.rename(path)
            undo.pop_all()

    @property
    def unacknowledged(self) -> int:
        """Bytes that have not arrived."""
        return max(self.size - max(self.ack.offset, FILE_HEADER.size), 0)

    def append(self, data: bytes) -> None:
        """Writes at the end, completely or not at all.

        Raises:
            QuotaError: The disk is full.
        """
        try:
            written = os.write(self._file, data)
        except OSError as failure:
            if failure.errno not in _FULL:
                raise
            raise self._full(os.strerror(failure.errno)) from failure
        if written < len(data):
            # Only a part fitted on the disk: without it the file ends with a whole record again.
            os.ftruncate(self._file, self.size)
            raise self._full(os.strerror(errno.ENOSPC))
        self.size += written

    def end(self) -> None:
        """Appends the END record and closes the file; its acknowledgement stays readable. Idempotent.

        Raises:
            QuotaError: The disk is full; the file stays open.
        """
        if not self.ended:
            self.append(frame(bytes((RecordType.END,))))
            os.close(self._file)
            self.ended = True

    def _full(self, reason: str) -> QuotaError:
        return QuotaError(f"cannot append to {self.path}: {reason}; free some space on its disk")


def _create(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as failure:
        if failure.errno not in _FULL:
            raise
        raise QuotaError(
            f"cannot create {path}: {os.strerror(failure.errno)}; free some space there"
        ) from failure


class SpoolWriter:
    """Appends records in order, for the process that created it.

    Several threads may use it. A forked child must not use it: two processes would share one sequence.

    Args:
        directory: Directory of the files; it must exist.
        name: Prefix of the file names, such as ``rank0``. The process id and a random part are added, so that
            names of different writers never collide.
        suffix: Suffix of the file names.
        segment_bytes: Size in bytes at which the next file begins.
    """

    def __init__(
        self, directory: Path, *, name: str, suffix: str, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._prefix = directory / f"{name}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._suffix = suffix
        self._segment_bytes = segment_bytes
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._number = 0
        self._closed = False
        self._older: list[Segment] = []
        self._current = self._open_next()

    @property
    def pattern(self) -> str:
        """Matches the names of all files of this writer within its directory."""
        return f"{self._prefix.name}-*{self._suffix}"

    @property
    def path(self) -> Path:
        """The file that is being written."""
        return self._current.path

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The files that have not arrived, as far as the writer knows, from the oldest to the current one."""
        return (*self._older, self._current)

    @property
    def unacknowledged(self) -> int:
        """Bytes that have not arrived."""
        return sum(segment.unacknowledged for segment in self.segments)

    def check_process(self) -> None:
        """Fails in a forked child.

        Raises:
            ForkedProcessError: This process is not the one that created the writer.
        """
        if os.getpid() != self._owner:
            raise ForkedProcessError(
                "this report comes from a process forked off the one that called core.init; report from that "
                "process instead, for example by passing values through a multiprocessing queue"
            )

    def append(self, payload: bytes) -> None:
        """Writes one record. It survives a crash of the process once this returns.

        Raises:
            InvalidArgumentError: The record is too large for any message, or the writer is closed.
            ForkedProcessError: The writer belongs to the parent process.
            QuotaError: The disk is full.
        """
        self.check_process()
        check_size(payload)
        with self._lock:
            self._rotate_if_full()
            self._current.append(frame(payload))

    def close(self) -> None:
        """Ends the source. What has not arrived stays on disk for the sender."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closed = True
            self._current.end()

    def forget(self, segment: Segment) -> None:
        """Drops a file that has arrived."""
        with self._lock:
            self._older = [other for other in self._older if other is not segment]

    def _rotate_if_full(self) -> None:
        if self._closed:
            # Its descriptor may be that of another file by now.
            raise InvalidArgumentError("a report came after the context was closed; report before its end")
        if self._current.size < self._segment_bytes:
            return
        # Each step can fail on a full disk, and the next call continues with the one that failed.
        self._current.end()
        following = self._open_next()
        self._older = [*self._older, self._current]
        self._current = following
        self._start_segment()

    def _start_segment(self) -> None:
        """Called when a new file was started, for records that each file must contain."""

    def _open_next(self) -> Segment:
        self._number += 1
        return Segment(self._prefix.with_name(f"{self._prefix.name}-{self._number:04d}{self._suffix}"))


def check_size(payload: bytes) -> None:
    """Fails for a payload that fits into no message.

    Raises:
        InvalidArgumentError: It is larger than ``MAX_PAYLOAD``.
    """
    if len(payload) > MAX_PAYLOAD:
        raise InvalidArgumentError(
            f"a report of {len(payload)} bytes is over the limit of {MAX_PAYLOAD}; "
            "put large data into a checkpoint"
        )
