"""How far a source has arrived: a few numbers that sender and writer share in memory."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

SUFFIX = ".ack"
_SIZE = 64
_U64 = struct.Struct("<Q")


class AckFile:
    """The part of a source that its service has for good, written by the sender and read by the writer.

    Little endian: u64 offset, u64 number of refused reports. After a crash of the machine it may lag behind
    the truth; then the sender sends again what the service knows already.
    """

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < _SIZE:
                os.ftruncate(descriptor, _SIZE)
            self._map = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)

    @classmethod
    def of(cls, spool: Path) -> AckFile:
        """Opens the file that belongs to a spool, creating it if need be."""
        return cls(spool.with_suffix(SUFFIX))

    @property
    def offset(self) -> int:
        """Bytes of the spool that have arrived."""
        return int(_U64.unpack(self._map[0:8])[0])

    def advance(self, offset: int) -> None:
        """Moves the offset forward; a smaller one changes nothing."""
        if offset > self.offset:
            self._map[0:8] = _U64.pack(offset)

    @property
    def refusals(self) -> int:
        """Number of reports that the service refused so far."""
        return int(_U64.unpack(self._map[8:16])[0])

    def add_refusals(self, count: int) -> None:
        """Counts refused reports, after they were appended to the source's refusals file."""
        self._map[8:16] = _U64.pack(self.refusals + count)

    def close(self) -> None:
        """Gives the map back."""
        self._map.close()
