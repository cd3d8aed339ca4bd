"""Measures the GPU usage of a run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Protocol

from resolute.contracts.clock import Clock
from resolute.contracts.run.gpu_usage import GpuUsage
from resolute.runtime.gpu_readings import GpuUse
from resolute_launch.gpus.idleness import Idleness

_log = logging.getLogger("resolute.supervisor")


class MeasuredGpus(Protocol):
    """The GPUs of a run: those of the driver, or readings of a test."""

    def use(self) -> Sequence[GpuUse]:
        """Returns how much each works, always in the same order."""

    def close(self) -> None:
        """Ends the reading."""


class GpuMeter:
    """Reads the utilisation of GPUs in a thread of its own, from ``start`` to ``stop``.

    Args:
        open_gpus: Opens the GPUs, which may take a second.
        clock: Clock for the time that a reading covers.
        pause: Seconds between two readings.
        idleness: Receives the utilisation while the entrypoint runs; None without a policy.
    """

    def __init__(
        self,
        open_gpus: Callable[[], MeasuredGpus],
        *,
        clock: Clock,
        pause: float = 2.0,
        idleness: Idleness | None = None,
    ) -> None:
        self._open_gpus, self._clock, self._pause = open_gpus, clock, pause
        self._idleness = idleness
        self._entrypoint_runs = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-meter", daemon=True)
        self._before: Sequence[GpuUse] = ()
        self._read_at = 0.0
        self._energy: float | None = None
        self._busy = self._measured = 0.0

    def start(self) -> None:
        """Begins to measure."""
        self._thread.start()

    def entrypoint_runs(self) -> None:
        """Lets idleness count from now on: before, there was nothing for the GPUs to do."""
        self._entrypoint_runs = True

    def stop(self) -> GpuUsage | None:
        """Ends the measuring, if it was begun.

        Returns:
            What was measured; None if nothing was.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if not self._measured and self._energy is None:
            return None
        return GpuUsage(energy_joules=self._energy, busy_seconds=self._busy, measured_seconds=self._measured)

    def _run(self) -> None:
        try:
            with closing(self._open_gpus()) as gpus:
                self._take(gpus.use())
                while not self._stop.wait(self._pause):
                    self._take(gpus.use())
                self._take(gpus.use())
        except Exception as failure:  # noqa: BLE001  # a driver that fails must not end a run
            _log.warning("the use of the GPUs is not measured any more: %s", failure)

    def _take(self, readings: Sequence[GpuUse]) -> None:
        now = self._clock.monotonic()
        seconds = now - self._read_at
        measured = busy = 0.0
        for before, reading in zip(self._before, readings, strict=True) if self._before else ():
            if reading.busy is not None:
                measured += seconds
                busy += seconds * reading.busy
            # A driver that is loaded again begins to count again.
            if before.energy_joules is not None and reading.energy_joules is not None:
                self._energy = (self._energy or 0.0) + max(0.0, reading.energy_joules - before.energy_joules)
        self._measured += measured
        self._busy += busy
        if self._idleness is not None and self._entrypoint_runs and self._before:
            # Where the driver tells of some of them only, the others may be at work.
            if any(reading.busy is None for reading in readings):
                measured = busy = 0.0
            self._idleness.add(seconds, measured=measured, busy=busy)
        self._before, self._read_at = readings, now
