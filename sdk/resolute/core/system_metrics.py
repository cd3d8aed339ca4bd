"""Measurements of this machine."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock

_HEAT_OR_POWER = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""Reasons for lower clocks: the limit of power, a slowdown by the hardware, heat that the driver or the
hardware measures, the brake of the power supply. Others are no fault, such as idleness and set clocks.
"""
_GPU_READINGS: Mapping[str, Callable[[Any, Any], float]] = {
    "gpu_util": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
    "gpu_free_memory": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).free,
    "gpu_power": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
    "gpu_temperature": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "gpu_throttled": lambda nvml, gpu: bool(
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu) & _HEAT_OR_POWER
    ),
    "gpu_ecc_errors": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
        gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    ),
}
"""What is read of a GPU: percent, bytes, watts, °C, whether it is throttled, and uncorrected memory errors.

These are counted since the driver was loaded.
"""
Samples = Mapping[str, Mapping[str, float]]
"""Values by group and dotted name."""


class Averages:
    """Means of several samples."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, dict[str, float]] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, samples: Samples) -> None:
        """Takes one sample in."""
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
    """Measures processor, memory, disk and network with psutil, and GPUs where pynvml finds some.

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
        self._gpus = _Gpus()
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


class _Gpus:
    """The GPUs of this machine by NVML; none where its library or driver is absent."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: dict[str, Any] = {}
        with contextlib.suppress(ImportError):
            nvml = importlib.import_module("pynvml")
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlInit()
                self._nvml = nvml
                self._handles = dict(self._find(nvml))

    def sample(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for name, handle in self._handles.items():
            for quantity, read in _GPU_READINGS.items():
                # A driver tells of some GPUs less than of others.
                with contextlib.suppress(self._nvml.NVMLError):
                    values[f"{name}.{quantity}"] = float(read(self._nvml, handle))
        return values

    def close(self) -> None:
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()

    @staticmethod
    def _find(nvml: Any) -> Iterator[tuple[str, Any]]:
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            name = nvml.nvmlDeviceGetUUID(handle)
            yield name.decode() if isinstance(name, bytes) else name, handle
