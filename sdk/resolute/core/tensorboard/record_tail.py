"""Reads records of a TensorBoard file while another process appends to it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

MAX_RECORD_BYTES = 64 << 20
"""What is larger is passed over."""
_LENGTH = struct.Struct("<Q")
_HEAD_BYTES = 12
_CHECKSUM_BYTES = 4


class RecordTail:
    """Reads each record once. It does not verify checksums: the readers check the content.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0

    def read(self) -> Iterator[bytes]:
        """Yields the records that are complete and were not yielded yet.

        Raises:
            OSError: The file cannot be read.
        """
        with self._path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while self._place + _HEAD_BYTES <= size:
                file.seek(self._place)
                (length,) = _LENGTH.unpack(file.read(_HEAD_BYTES)[: _LENGTH.size])
                end = self._place + _HEAD_BYTES + length + _CHECKSUM_BYTES
                if end > size:
                    return
                record = file.read(length) if length <= MAX_RECORD_BYTES else b""
                self._place = end
                yield record
