"""Readings of this machine from its kernel's files, and of its GPUs from their driver."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute.runtime.gpu_readings import Gpus

_SECTOR = 512
"""Bytes: what the kernel counts for disks, whatever their own sectors are."""
_PART = re.compile(r"(loop|ram|zram|dm-|md|sr)\d+$|(sd|hd|vd|xvd)[a-z]+\d+$|(nvme\d+n\d+|mmcblk\d+)p\d+$")
"""Devices whose traffic is another's too, or none of a disk."""
_INACTIVE = re.compile(r"^inactive_file (\d+)$", re.MULTILINE)
_IDLE, _WAITING = 3, 4
"""Places among the times of the processors."""


@dataclass(frozen=True, slots=True)
class MachineFiles:
    """The kernel's files about the machine."""

    proc: Path = Path("/proc")
    group: Path = Path("/sys/fs/cgroup")
    """The control group of this container."""


@dataclass(frozen=True, slots=True)
class _Counters:
    busy: float
    """Ticks in which processors worked."""
    ticks: float
    rates: Mapping[str, float]
    """Bytes by the name of their rate."""


class Readings:
    """Reads the usage of the machine: percent of processors and memory, bytes a second of disks and network.

    Memory is that of the container if it has a limit. Values that the kernel does not provide are left out.

    Args:
        devices: The GPUs to read, by index or UUID.
        clock: Measures rates.
        files: The kernel's files about the machine.
    """

    def __init__(
        self, devices: Collection[str], *, clock: Clock, files: MachineFiles = MachineFiles()
    ) -> None:  # it is frozen
        self._clock, self._files = clock, files
        self._gpus = Gpus(devices, clock=clock) if devices else None
        self._before, self._read_at = self._counters(), clock.monotonic()

    def read(self) -> dict[str, float]:
        """Returns what was since the last reading, by name."""
        now, counters = self._clock.monotonic(), self._counters()
        seconds, before = now - self._read_at, self._before
        self._read_at, self._before = now, counters
        values: dict[str, float] = {}
        if counters.ticks > before.ticks:
            values["cpu"] = 100.0 * (counters.busy - before.busy) / (counters.ticks - before.ticks)
        if (memory := self._memory()) is not None:
            values["memory"] = memory
        if seconds > 0:
            values |= {
                # A device that went takes its count with it.
                name: max(0.0, count - before.rates[name]) / seconds
                for name, count in counters.rates.items()
                if name in before.rates
            }
        return values if self._gpus is None else values | self._gpus.sample() | self._gpus.processes()

    def close(self) -> None:
        """Ends the reading."""
        if self._gpus is not None:
            self._gpus.close()

    def _counters(self) -> _Counters:
        lines = self._lines("stat")
        ticks = [float(word) for word in lines[0].split()[1:9]] if lines else []
        idle = sum(ticks[_IDLE : _WAITING + 1])
        return _Counters(sum(ticks) - idle, sum(ticks), {**self._disks(), **self._network()})

    def _disks(self) -> dict[str, float]:
        devices = [words for line in self._lines("diskstats") if len(words := line.split()) > 9]
        whole = [words for words in devices if not _PART.match(words[2])]
        if not whole:
            return {}
        read, written = (sum(float(words[place]) for words in whole) * _SECTOR for place in (5, 9))
        return {"disk_read": read, "disk_write": written}

    def _network(self) -> dict[str, float]:
        lines = [line.partition(":") for line in self._lines("net/dev")[2:]]
        counts = [rest.split() for name, _, rest in lines if name.strip() != "lo"]
        if not counts:
            return {}
        return {
            "net_received": sum(float(words[0]) for words in counts),
            "net_sent": sum(float(words[8]) for words in counts),
        }

    def _memory(self) -> float | None:
        with suppress(OSError, ValueError):
            # Older control groups and machines without any have no such file, and no limit is a word.
            limit = int((self._files.group / "memory.max").read_text())
            used = int((self._files.group / "memory.current").read_text())
            cached = _INACTIVE.search((self._files.group / "memory.stat").read_text())
            return 100.0 * (used - int(cached[1] if cached else 0)) / limit
        sizes = dict(line.split(":", 1) for line in self._lines("meminfo") if ":" in line)
        if "MemTotal" not in sizes or "MemAvailable" not in sizes:
            return None
        total, available = (float(sizes[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
        return 100.0 * (1 - available / total)

    def _lines(self, name: str) -> list[str]:
        try:
            return (self._files.proc / name).read_text().splitlines()
        except OSError:
            return []
