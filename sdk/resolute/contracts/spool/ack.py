"""The acknowledged position of a source: two numbers in memory that sender and writer share."""

from __future__ import annotations

import struct
from pathlib import Path

from resolute.contracts.files.mapped_file import map_file

SUFFIX = ".ack"
_SIZE = 64
_U64 = struct.Struct("<Q")


class AckFile:
    """The position up to which the service has stored a source. The sender writes it, the writer reads it.

    The format is little endian: u64 offset, u64 number of refused reports. After a crash of the machine the
    position may be behind the service; then the sender repeats records that the service already has.

    Args:
        path: The file; it is created if it is missing.

    Raises:
        QuotaError: The disk is full.
    """

    def __init__(self, path: Path) -> None:
        self._map = map_file(path, _SIZE, create=True)

    @staticmethod
    def path_for(spool: Path) -> Path:
        """The file that belongs to a spool."""
        return spool.with_suffix(SUFFIX)

    @classmethod
    def of(cls, spool: Path) -> AckFile:
        """Opens the file that belongs to a spool, creating it if it is missing."""
        return cls(cls.path_for(spool))

    @classmethod
    def read_offset(cls, spool: Path) -> int:
        """Bytes of a spool that have arrived, zero where its file is missing; the file is not mapped.

        A page that storage which does not answer is to give would hold up every thread of the process.
        """
        try:
            content = cls.path_for(spool).read_bytes()
        except FileNotFoundError:
            return 0
        return int(_U64.unpack(content[:8])[0]) if len(content) >= _U64.size else 0

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
        """Unmaps the file."""
        self._map.close()
