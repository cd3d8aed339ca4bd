"""Detects processes that the kernel has killed for lack of memory, and reads the memory usage and limit."""

from __future__ import annotations

import re
import resource
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.sizes import human_size

_OOM_KILL = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)
_NO_LIMIT = 1 << 60
"""Bytes: what the kernel shows for no limit is more."""


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """The kernel's files about memory."""

    machine: Path = Path("/proc/vmstat")
    """Counters of the whole machine, its containers included."""
    total: Path = Path("/proc/meminfo")
    group: Path = Path("/sys/fs/cgroup")
    """The control group of this container."""


class MemoryKills:
    """Counts the kernel's kills since its creation.

    Args:
        files: The kernel's files. If they are missing, nothing is counted.
    """

    def __init__(self, files: MemoryFiles = MemoryFiles()) -> None:  # it is frozen
        self._files = files
        self._before = self._kills()

    def explain(self) -> str:
        """Says how much memory was used of how much, if the kernel has killed a process since.

        Returns:
            The end of a sentence; empty if it has killed none.
        """
        before, now = self._before, self._kills()
        if now[0] > before[0] and (limit := self._group_limit()) is not None:
            peak = self._group_bytes("memory.peak", "memory.max_usage_in_bytes")
            used = f"up to {human_size(peak)} " if peak else "all "
            return f"the container used {used}of its limit of {human_size(limit)}"
        # Counters that are gone, or begin again, tell of none.
        if now[0] > before[0] or now[1] > before[1]:
            largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            total = _number(self._files.total, _TOTAL) * 1024
            return (
                f"the kernel ended a process of this machine, which has {human_size(total)}; the largest "
                f"process of the run used up to {human_size(largest)}"
            )
        return ""

    def _kills(self) -> tuple[int, int]:
        """Processes killed in this container, and on the machine."""
        group = _number(self._files.group / "memory.events", _OOM_KILL)
        return group, _number(self._files.machine, _OOM_KILL)

    def _group_limit(self) -> int | None:
        limit = self._group_bytes("memory.max", "memory.limit_in_bytes")
        return limit if limit and limit < _NO_LIMIT else None

    def _group_bytes(self, name: str, older_name: str) -> int:
        for path in (self._files.group / name, self._files.group / "memory" / older_name):
            try:
                text = path.read_text().strip()
            except OSError:
                continue
            if text.isdecimal():
                return int(text)
        return 0


def _number(path: Path, pattern: re.Pattern[str]) -> int:
    try:
        match = pattern.search(path.read_text())
    except OSError:
        return 0
    return int(match[1]) if match else 0
