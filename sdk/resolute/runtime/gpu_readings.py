"""Readings of GPUs from NVIDIA's management library."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock

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
    # The driver watches the bus for 20 ms for each of them.
    "gpu_pcie_sent": lambda nvml, gpu: (
        1000 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_TX_BYTES)
    ),
    "gpu_pcie_received": lambda nvml, gpu: (
        1000 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_RX_BYTES)
    ),
}
"""What is read of a GPU: percent, percent, bytes, watts, °C, whether it is throttled, memory errors (the
uncorrected ones since the driver was loaded), and bytes a second.
"""
_NVLINK = {
    "gpu_nvlink_sent": "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX",
    "gpu_nvlink_received": "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX",
}
"""Counters of KiB."""
_ALL_LINKS = 0xFFFFFFFF
_MOST_PROCESSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """The utilisation of one GPU. Values that its driver does not report are None."""

    energy_joules: float | None
    """Since the driver was loaded."""
    busy: float | None
    """The share of the last moments, at most a second, in which it worked: 0 to 1."""


class Gpus:
    """The GPUs of this machine by NVML; there are none if its library or driver is absent.

    Args:
        devices: Indices or UUIDs of the GPUs to read, or UUIDs of parts of a GPU; None for all.
        clock: Measures rates.
    """

    def __init__(self, devices: Collection[str] | None = None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._nvml: Any = None
        self._handles: dict[str, Any] = {}
        self._unknown = len(devices or ())
        self._counted: dict[str, tuple[float, float]] = {}
        self._samples_until: dict[str, int] = {}
        with contextlib.suppress(ImportError):
            nvml = importlib.import_module("pynvml")
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlInit()
                self._nvml = nvml
                self._handles = dict(_found(nvml, devices))
                self._unknown = max(0, self._unknown - len(self._handles))

    def sample(self) -> dict[str, float]:
        """Returns the readings of the driver, by ``<UUID of the GPU>.<quantity>``."""
        values: dict[str, float] = {}
        for name, handle in self._handles.items():
            for quantity, read in _GPU_READINGS.items():
                # A driver tells of some GPUs less than of others.
                with contextlib.suppress(self._nvml.NVMLError):
                    values[f"{name}.{quantity}"] = float(read(self._nvml, handle))
            values |= self._links(name, handle)
        return values

    def processes(self) -> dict[str, float]:
        """Returns the GPU usage of processes: for each GPU, the few that use most of its memory.

        Returns:
            Bytes and percent, by the UUID of the GPU, the number of the process on the machine, and the
            quantity.
        """
        values: dict[str, float] = {}
        for name, handle in self._handles.items():
            memory = self._memory_by_process(handle)
            working = self._work_by_process(name, handle)
            for pid in sorted(memory, key=memory.__getitem__, reverse=True)[:_MOST_PROCESSES]:
                values[f"{name}.{pid}.gpu_process_memory"] = memory[pid]
                if pid in working:
                    values[f"{name}.{pid}.gpu_process_util"] = working[pid]
        return values

    def use(self) -> Sequence[GpuUse]:
        """Returns the usage of each GPU in a fixed order; empty readings for GPUs that no driver knows."""
        known = [
            GpuUse(energy_joules=self._energy(handle), busy=self._busy(handle))
            for handle in self._handles.values()
        ]
        return [*known, *[GpuUse(energy_joules=None, busy=None)] * self._unknown]

    def close(self) -> None:
        """Shuts down the driver's library."""
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()

    def _links(self, name: str, handle: Any) -> dict[str, float]:
        """Returns the bytes per second over all links to other GPUs since the last reading."""
        fields = [(getattr(self._nvml, field), _ALL_LINKS) for field in _NVLINK.values()]
        try:
            readings = self._nvml.nvmlDeviceGetFieldValues(handle, fields)
        except self._nvml.NVMLError:
            return {}
        rates = {}
        for quantity, field in zip(_NVLINK, readings, strict=True):
            if field.nvmlReturn == self._nvml.NVML_SUCCESS:
                now, count = self._clock.monotonic(), 1024.0 * field.value.ullVal
                read_at, before = self._counted.get(key := f"{name}.{quantity}", (now, count))
                self._counted[key] = now, count
                # A driver that is loaded again begins to count again.
                if now > read_at and count >= before:
                    rates[key] = (count - before) / (now - read_at)
        return rates

    def _memory_by_process(self, handle: Any) -> dict[int, float]:
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except self._nvml.NVMLError:
            return {}
        return {process.pid: float(process.usedGpuMemory or 0) for process in running}

    def _work_by_process(self, name: str, handle: Any) -> dict[int, float]:
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(handle, self._samples_until.get(name, 0))
        except self._nvml.NVMLError:
            return {}
        by_process: dict[int, list[int]] = {}
        for sample in samples:
            by_process.setdefault(sample.pid, []).append(sample.smUtil)
            self._samples_until[name] = max(self._samples_until.get(name, 0), sample.timeStamp)
        return {pid: sum(shares) / len(shares) for pid, shares in by_process.items()}

    def _energy(self, handle: Any) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000
        except self._nvml.NVMLError:
            return None

    def _busy(self, handle: Any) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
        except self._nvml.NVMLError:
            return None


def _found(nvml: Any, devices: Collection[str] | None) -> Iterator[tuple[str, Any]]:
    for device in map(str, range(nvml.nvmlDeviceGetCount())) if devices is None else devices:
        with contextlib.suppress(nvml.NVMLError):
            handle = (
                nvml.nvmlDeviceGetHandleByIndex(int(device))
                if device.isdecimal()
                else nvml.nvmlDeviceGetHandleByUUID(device)
            )
            uuid = nvml.nvmlDeviceGetUUID(handle)
            yield uuid.decode() if isinstance(uuid, bytes) else uuid, handle


def _used_percent(memory: Any) -> float:
    return 100.0 * float(memory.used) / float(memory.total)
