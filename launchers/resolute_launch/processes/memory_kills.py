"""Whether the kernel has killed processes for lack of memory."""

from __future__ import annotations

import re
from pathlib import Path

_COUNTER = Path("/proc/vmstat")
_OOM_KILL = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class MemoryKills:
    """Counts from its creation on, by the kernel's counter of the whole machine, its containers included.

    Args:
        counter: The file with the kernel's counters; where it has none, nothing is ever counted.
    """

    def __init__(self, counter: Path = _COUNTER) -> None:
        self._counter = counter
        self._before = self._read()

    def count(self) -> int:
        """How many processes the kernel has killed since."""
        return max(0, self._read() - self._before)

    def _read(self) -> int:
        try:
            found = _OOM_KILL.search(self._counter.read_text())
        except OSError:
            return 0
        return int(found[1]) if found else 0
