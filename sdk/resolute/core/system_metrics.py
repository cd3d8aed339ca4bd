"""Measurements of this machine."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.runtime.gpu_readings import Gpus

Samples = Mapping[str, Mapping[str, float]]
"""Values by group and dotted name."""


class Averages:
    """Means of several samples."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, dict[str, float]] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, samples: Samples) -> None:
        """Adds a sample."""
        self.count += 1
        for group, values in samples.items():
            sums = self._sums.setdefault(group, {})
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + value
                self._counts[group, name] = self._counts.get((group, name), 0) + 1

    def take(self) -> Samples:
        """Returns the means and begins again."""
        means = {
            group: {name: total / self._counts[group, name] for name, total in sums.items()}
            for group, sums in self._sums.items()
        }
        self.count = 0
        self._sums = {}
        self._counts = {}
        return means


class MachineSampler:
    """Measures processor, memory, disk and network with psutil, and the GPUs that pynvml lists.

    Args:
        clock: Measures rates.

    Raises:
        ImportError: psutil is not installed.
    """

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK) -> None:
        try:
            self._psutil: Any = importlib.import_module("psutil")
        except ImportError as failure:
            raise ImportError("profiling needs psutil: pip install psutil") from failure
        self._clock = clock
        self._gpus = Gpus(clock=clock)
        self._last_time = clock.monotonic()
        self._last = self._counters()
        # The first value is measured from here; without this call it would be meaningless.
        self._psutil.cpu_percent(interval=None)

    def sample(self) -> Samples:
        """Returns the groups cpu, memory, disk, network and, where there are GPUs, gpu."""
        now, counters = self._clock.monotonic(), self._counters()
        seconds = max(now - self._last_time, 1e-9)
        rates = {name: (value - self._last[name]) / seconds for name, value in counters.items()}
        self._last_time, self._last = now, counters
        memory = self._psutil.virtual_memory()
        groups: dict[str, Mapping[str, float]] = {
            "cpu": {"cpu_util_simple": float(self._psutil.cpu_percent(interval=None))},
            "memory": {"memory_free": memory.available / 2**30},
            "disk": {
                "disk_iops": rates["disk_operations"],
                "disk_throughput_read": rates["disk_read"],
                "disk_throughput_write": rates["disk_written"],
            },
            "network": {"net_throughput_sent": rates["sent"], "net_throughput_recv": rates["received"]},
        }
        gpus = self._gpus.sample()
        return {**groups, "gpu": gpus} if gpus else groups

    def close(self) -> None:
        """Shuts the library of the GPUs down."""
        self._gpus.close()

    def _counters(self) -> dict[str, float]:
        disk = self._psutil.disk_io_counters()
        network = self._psutil.net_io_counters()
        return {
            "disk_operations": disk.read_count + disk.write_count if disk else 0,
            "disk_read": disk.read_bytes if disk else 0,
            "disk_written": disk.write_bytes if disk else 0,
            "sent": network.bytes_sent if network else 0,
            "received": network.bytes_recv if network else 0,
        }
