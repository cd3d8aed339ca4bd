"""Measures the machine of a container, and reports it to the control plane at intervals."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Protocol

from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute.contracts.clock import Clock
from resolute.errors import ResoluteError
from resolute_launch.machine.periods import Periods

_log = logging.getLogger("resolute.supervisor")


class Measured(Protocol):
    """Measures the machine."""

    def read(self) -> dict[str, float]:
        """Returns what was since the last reading, by name."""

    def close(self) -> None:
        """Ends the reading."""


class MachineMeter:
    """A thread that measures from ``start`` to ``stop``. A failure is only logged.

    Its measurements are separate from the reports of the script: they do not count against limits of reports,
    and each message replaces the previous one. A run that ends before the first reading reports nothing.

    Args:
        open_readings: Opens the readings.
        report: Sends all measurements to the control plane.
        node: Name of the machine.
        clock: Tells the time.
        pause: Seconds between two readings.
        report_every: Seconds between two messages; the first one is sent after the first reading.
    """

    def __init__(
        self,
        open_readings: Callable[[], Measured],
        *,
        report: Callable[[MachineUsage], None],
        node: str,
        clock: Clock,
        pause: float = 5.0,
        report_every: float = 30.0,
    ) -> None:
        self._open_readings, self._report, self._node = open_readings, report, node
        self._clock, self._pause, self._report_every = clock, pause, report_every
        self._periods = Periods()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="machine-meter", daemon=True)

    def start(self) -> None:
        """Begins to measure."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Ends the measuring, if it was begun, and waits for the last message for a bounded time."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            with closing(self._open_readings()) as readings:
                self._measure(readings)
        except Exception as failure:  # noqa: BLE001  # what cannot be measured must not end a run
            _log.info("the machine is not measured any more: %s", failure)

    def _measure(self, readings: Measured) -> None:
        began, before = self._clock.time(), self._clock.monotonic()
        report_at = before
        while not self._stop.wait(self._pause):
            now = self._clock.monotonic()
            self._periods.add(now - before, readings.read())
            before = now
            if now >= report_at:
                report_at = now + self._report_every
                self._send(began)
        if self._periods.all():
            self._periods.add(max(self._clock.monotonic() - before, 1e-3), readings.read())
            self._send(began)

    def _send(self, began: float) -> None:
        try:
            self._report(self._usage(began))
        except (ResoluteError, ValueError) as failure:  # ValueError: the channel was closed meanwhile
            _log.info("what the machine did could not be reported: %s", failure)

    def _usage(self, began: float) -> MachineUsage:
        periods = self._periods.all()
        means = [period.means for period in periods]
        return MachineUsage(
            node=self._node,
            start_time=began,
            seconds=[period.seconds for period in periods],
            series=[
                MachineUsage.Series(name=name, values=[mean.get(name, math.nan) for mean in means])
                for name in self._periods.names()
            ],
        )
