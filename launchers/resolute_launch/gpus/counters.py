"""Counters of GPU drivers."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One GPU at one moment; None where its driver does not tell."""

    energy_joules: float | None
    """Since the driver was loaded."""
    busy: float | None
    """The share of the last moments, at most a second, in which it worked: 0 to 1."""


class GpuCounters(Protocol):
    """Reads the counters of some GPUs."""

    def read(self) -> Sequence[Reading]:
        """Reads each GPU, always in the same order."""

    def close(self) -> None:
        """Ends the reading."""


class NvmlCounters:
    """The counters of NVIDIA's management library.

    Args:
        nvml: The module ``pynvml``, initialized.
        handles: The GPUs.
    """

    def __init__(self, nvml: Any, handles: Sequence[Any]) -> None:
        self._nvml, self._handles = nvml, handles

    @classmethod
    def open(cls, devices: Sequence[str]) -> NvmlCounters | None:
        """Opens the counters of GPUs by their UUIDs; None if ``nvidia-ml-py`` or the driver is not there."""
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return None
        with ExitStack() as opened:
            try:
                nvml.nvmlInit()
                opened.callback(nvml.nvmlShutdown)
                handles = [nvml.nvmlDeviceGetHandleByUUID(device) for device in devices]
            except nvml.NVMLError:
                return None
            opened.pop_all()
        return cls(nvml, handles)

    def read(self) -> Sequence[Reading]:
        """Reads each GPU; parts of GPUs have no counters of their own."""
        return [
            Reading(energy_joules=self._energy(handle), busy=self._busy(handle)) for handle in self._handles
        ]

    def close(self) -> None:
        """Closes the library."""
        self._nvml.nvmlShutdown()

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
