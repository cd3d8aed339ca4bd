"""What NVIDIA's management library tells of GPUs."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

_HEAT_OR_POWER = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""Reasons for lower clocks: the limit of power, a slowdown by the hardware, heat that the driver or the
hardware measures, the brake of the power supply. Others are no fault, such as idleness and set clocks.
"""
_GPU_READINGS: Mapping[str, Callable[[Any, Any], float]] = {
    "gpu_util": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
    "gpu_used_memory": lambda nvml, gpu: _used_percent(nvml.nvmlDeviceGetMemoryInfo(gpu)),
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
"""What is read of a GPU: percent, percent, bytes, watts, °C, whether it is throttled, and memory errors.

These are the uncorrected ones since the driver was loaded.
"""


class Gpus:
    """The GPUs of this machine by NVML; none where its library or driver is absent.

    Args:
        devices: Those that are read, by index or UUID; None for all.
    """

    def __init__(self, devices: Collection[str] | None = None) -> None:
        self._nvml: Any = None
        self._handles: dict[str, Any] = {}
        with contextlib.suppress(ImportError):
            nvml = importlib.import_module("pynvml")
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlInit()
                self._nvml = nvml
                self._handles = dict(_found(nvml, devices))

    def sample(self) -> dict[str, float]:
        """Returns what the driver tells, by the UUID of the GPU, a dot, and the quantity."""
        values: dict[str, float] = {}
        for name, handle in self._handles.items():
            for quantity, read in _GPU_READINGS.items():
                # A driver tells of some GPUs less than of others.
                with contextlib.suppress(self._nvml.NVMLError):
                    values[f"{name}.{quantity}"] = float(read(self._nvml, handle))
        return values

    def close(self) -> None:
        """Shuts the library down."""
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()


def _found(nvml: Any, devices: Collection[str] | None) -> Iterator[tuple[str, Any]]:
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = nvml.nvmlDeviceGetUUID(handle)
        name = uuid.decode() if isinstance(uuid, bytes) else uuid
        if devices is None or {name, str(index)} & set(devices):
            yield name, handle


def _used_percent(memory: Any) -> float:
    return 100.0 * float(memory.used) / float(memory.total)
