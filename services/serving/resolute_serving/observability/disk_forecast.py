"""Forecasts when disks will be full, at the pace of the last hour."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute_serving.observability.disks import by_device

_SAMPLES = 60
_PAUSE_SECONDS = 60.0
"""Between two samples."""
_SOON_SECONDS = 12 * 3600.0
"""A disk that is full later is no problem yet."""


def _free_bytes(path: Path) -> int:
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize


class DiskForecast:
    """Measures disks at each call, and returns those that will be full soon.

    Because files are also removed, it compares the least free space of the last half hour with that of the
    half hour before.

    Args:
        paths: The directories to which the service writes.
        clock: Clock for the times of measurements.
        free_bytes: Returns the free bytes of a directory.
    """

    def __init__(
        self, paths: Iterable[Path], *, clock: Clock, free_bytes: Callable[[Path], int] = _free_bytes
    ) -> None:
        self._paths, self._clock, self._free_bytes = tuple(paths), clock, free_bytes
        self._samples: dict[int, deque[int]] = {}
        self._sampled_at: float | None = None

    def problems(self) -> list[str]:
        """Says which disks will be full within twelve hours; each disk once."""
        now = self._clock.monotonic()
        disks = by_device(self._paths)
        late = self._sampled_at is None or now - self._sampled_at >= 2 * _PAUSE_SECONDS
        if late:
            # The machine stood still, or there was no question: samples would not be a minute apart.
            self._samples.clear()
        if late or (self._sampled_at is not None and now - self._sampled_at >= _PAUSE_SECONDS):
            self._sampled_at = now
            for device, paths in disks.items():
                samples = self._samples.setdefault(device, deque(maxlen=_SAMPLES))
                samples.append(self._free_bytes(paths[0]))
        return [
            problem
            for device, paths in disks.items()
            if (problem := _problem(paths, self._samples.get(device, ())))
        ]


def _problem(paths: Sequence[Path], samples: Sequence[int]) -> str:
    if len(samples) < _SAMPLES:
        return ""
    half = _SAMPLES // 2
    values = list(samples)
    before, after = min(values[:half]), min(values[half:])
    seconds = half * _PAUSE_SECONDS
    if after >= before or (left := after * seconds / (before - after)) > _SOON_SECONDS:
        return ""
    names, hours = ", ".join(map(str, paths)), max(left / 3600, 0.1)
    return (
        f"the disk of {names} will be full in about {hours:.1f} hours at the pace of the last hour "
        f"({after / 1e9:.1f} GB free): free some space there"
    )
