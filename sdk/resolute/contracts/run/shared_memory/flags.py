"""The preemption signal and its acknowledgement, in memory that the supervisor and the trial share."""

from __future__ import annotations

import struct
from pathlib import Path

from resolute.contracts.files.mapped_file import map_file

FLAGS_SIZE = 4096
"""Bytes of the flags file; fixed, so that newer fields fit without a new file."""

_U64 = struct.Struct("<Q")
_F64 = struct.Struct("<d")


class Flags:
    """A map of the signal and its acknowledgement.

    Reading costs no system call, so a training loop may read the signal at every step. Numbers are little
    endian::

        0   u64  revision of the signal; written last, so that anyone who sees it sees the rest of the signal
        8   u8   1 when the allocation must checkpoint and exit
        9   u8   1 when it must end at once
        10  u8   why: ``SignalReason``
        16  f64  Unix time at which the processes will be ended; 0 without a deadline
        64  u8   1 when the trial has acknowledged: it exits because of the signal, or has no operation left
        72  u64  revision that it acknowledged; 0 when there was no signal

    The supervisor writes the first part, the trial the second. A map survives a fork and is harmless there.
    """

    def __init__(self, path: Path) -> None:
        self._map = map_file(path, FLAGS_SIZE, create=False)

    @classmethod
    def create(cls, path: Path) -> Flags:
        """Opens the flags, creating the file with no signal if it is missing.

        Raises:
            QuotaError: The disk is full.
        """
        map_file(path, FLAGS_SIZE, create=True).close()
        return cls(path)

    def set_signal(
        self, *, revision: int, preempt: bool, kill: bool = False, reason: int = 0, deadline: float = 0.0
    ) -> None:
        """Shows a signal to the trial; an older revision than the one shown changes nothing.

        Args:
            revision: Grows with every change of the allocation's signal.
            preempt: Whether the trial must checkpoint and exit.
            kill: Whether it must end at once.
            reason: ``SignalReason``.
            deadline: Unix time at which its processes will be ended; 0 for none.
        """
        if revision < self.revision:
            return
        self._map[16:24] = _F64.pack(deadline)
        self._map[10] = reason
        self._map[9] = kill
        self._map[8] = preempt
        self._map[0:8] = _U64.pack(revision)

    @property
    def revision(self) -> int:
        """Revision of the signal that is shown; 0 before the first."""
        return int(_U64.unpack(self._map[0:8])[0])

    @property
    def preempt(self) -> bool:
        """Whether the trial must checkpoint and exit."""
        return self._map[8] != 0

    @property
    def kill(self) -> bool:
        """Whether the trial must end at once."""
        return self._map[9] != 0

    @property
    def reason(self) -> int:
        """Why: ``SignalReason``."""
        return self._map[10]

    @property
    def deadline(self) -> float:
        """Unix time at which the processes will be ended; 0 for none."""
        return float(_F64.unpack(self._map[16:24])[0])

    def acknowledge(self) -> None:
        """Says that the trial exits because of the signal, or that it has no operation left. Idempotent."""
        self._map[72:80] = _U64.pack(self.revision)
        self._map[64] = 1

    @property
    def acknowledged(self) -> bool:
        """Whether the trial has acknowledged."""
        return self._map[64] != 0

    @property
    def acknowledged_revision(self) -> int:
        """Revision that the trial acknowledged; 0 when it has not, or when there was no signal."""
        return int(_U64.unpack(self._map[72:80])[0])

    def close(self) -> None:
        """Unmaps the page."""
        self._map.close()
