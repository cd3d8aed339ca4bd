"""Signs of life of a run's scripts, in memory that they share with the supervisor."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from resolute.contracts.files.mapped_file import map_file
from resolute.contracts.files.regular_file import open_regular

_SIZE = 4096
_COUNT = struct.Struct("<Q")
_BUSY = 8
_MOST_RANKS = 10_000


class Movement:
    """The progress of one rank's process. Writing it costs no system call, because every step writes it.

    Numbers are little endian::

        0   u64  grows with every sign of life
        8   u8   1 from a status on until the next step or report: what goes on may say nothing for long

    Args:
        folder: The folder for the progress of a run's processes; created if it is missing.
        rank: Rank of the process.

    Raises:
        QuotaError: The disk is full.
    """

    def __init__(self, folder: Path, *, rank: int) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._map = map_file(folder / f"rank{rank}", _SIZE, create=True)
        # Another process may have been of this rank, and busy at its end.
        self._map[_BUSY] = 0

    def step(self) -> None:
        """Tells that training goes on."""
        self.advance()
        self._map[_BUSY] = 0

    def advance(self) -> None:
        """Tells that some work of a long kind goes on, such as an upload."""
        _COUNT.pack_into(self._map, 0, _COUNT.unpack_from(self._map)[0] + 1)

    def begin_phase(self) -> None:
        """Tells that something has begun that may take long, such as a validation."""
        self.advance()
        self._map[_BUSY] = 1


@dataclass(frozen=True, slots=True)
class MovementTotal:
    """The sum of the progress of all processes."""

    count: int = 0
    """Grows with every sign of life; another number than before means that there was one."""
    busy: bool = False
    """Whether any is in a phase that may say nothing for long."""

    @classmethod
    def read(cls, folder: Path) -> MovementTotal:
        """Adds up what is in a folder; processes may write what they want there."""
        count, busy = 0, False
        for path in islice(folder.glob("rank*"), _MOST_RANKS):
            try:
                with open_regular(path) as file:
                    content = file.read(_BUSY + 1)
            except OSError:
                continue
            if len(content) > _BUSY:
                count += _COUNT.unpack_from(content)[0]
                busy |= content[_BUSY] != 0
        return cls(count, busy)
