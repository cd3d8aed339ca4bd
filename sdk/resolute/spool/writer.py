"""Appends records to a spool: one call to the system each, in files of bounded size."""

from __future__ import annotations

import errno
import os
import threading
import uuid
from pathlib import Path

from resolute.contracts.spool_ack import AckFile
from resolute.contracts.spool_format import FILE_HEADER, MAX_PAYLOAD, RecordType, file_header, frame
from resolute.errors import ForkedProcessError, QuotaError

SEGMENT_BYTES = 64 << 20
"""Size at which a writer goes on in a new file, so that files that have arrived can be removed."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Segment:
    """One file of a writer, created by it.

    Raises:
        FileExistsError: Someone else's file has this name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.refusals_seen = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.ack = AckFile.of(path)
        self.append(file_header())

    @property
    def unacknowledged(self) -> int:
        """Bytes of records that have not arrived."""
        return max(self.size - max(self.ack.offset, FILE_HEADER.size), 0)

    def append(self, data: bytes) -> None:
        """Writes at the end, wholly or not at all.

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
            # The last room of the disk took only a part: without it the file ends in a whole record again.
            os.ftruncate(self._file, self.size)
            raise self._full(os.strerror(errno.ENOSPC))
        self.size += written

    def close(self) -> None:
        """Closes the file; its acknowledgement stays readable."""
        os.close(self._file)

    def _full(self, reason: str) -> QuotaError:
        return QuotaError(f"cannot append to {self.path}: {reason}; free some space on its disk")


class SpoolWriter:
    """Appends records in order, for the process that created it.

    Safe to use from several threads. A forked child must not use it: two processes would share one sequence.

    Args:
        directory: Where the files go; it must exist.
        name: Begins the names of the files, such as ``rank0``; process and a random part are added to make
            sources that never collide.
        suffix: Ends them.
        segment_bytes: Size at which the next file is begun.
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
        """The files that the writer still cares for, oldest first, ending with the one being written."""
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
            ForkedProcessError: The writer belongs to the parent process.
            QuotaError: The record is too large for any message, or the disk is full.
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
            self._current.append(frame(bytes((RecordType.END,))))
            self._current.close()

    def forget(self, segment: Segment) -> None:
        """Stops caring for a file that has arrived."""
        with self._lock:
            self._older = [other for other in self._older if other is not segment]

    def _rotate_if_full(self) -> None:
        if self._current.size < self._segment_bytes:
            return
        following = self._open_next()
        self._current.append(frame(bytes((RecordType.END,))))
        self._current.close()
        self._older = [*self._older, self._current]
        self._current = following
        self._begin_segment()

    def _begin_segment(self) -> None:
        """Called when a new file was begun, for what each file must hold of its own."""

    def _open_next(self) -> Segment:
        self._number += 1
        return Segment(self._prefix.with_name(f"{self._prefix.name}-{self._number:04d}{self._suffix}"))


def check_size(payload: bytes) -> None:
    """Fails for a payload that fits into no message.

    Raises:
        QuotaError: It is larger than ``MAX_PAYLOAD``.
    """
    if len(payload) > MAX_PAYLOAD:
        raise QuotaError(
            f"a report of {len(payload)} bytes is over the limit of {MAX_PAYLOAD}; "
            "put large data into a checkpoint"
        )
