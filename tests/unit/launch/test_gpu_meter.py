"""What the GPUs of a run did is added up from the counters of their driver."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from support.clocks import ManualClock

from resolute.contracts.run.gpu_usage import GpuUsage
from resolute_launch.gpus.counters import NvmlCounters, Reading
from resolute_launch.gpus.meter import GpuMeter


class Counted:
    """Two GPUs, of which the second has no counter of energy; each reading comes ten seconds later."""

    def __init__(self, clock: ManualClock, energies: Sequence[float]) -> None:
        self._clock, self._energies = clock, iter(energies)
        self.all_read = threading.Event()
        self.closed = False

    def read(self) -> Sequence[Reading]:
        energy = next(self._energies, None)
        if energy is None:
            self.all_read.set()
            raise RuntimeError("the driver is gone")
        self._clock.advance(10)
        return [Reading(energy_joules=energy, busy=0.5), Reading(energy_joules=None, busy=1.0)]

    def close(self) -> None:
        self.closed = True


def test_energy_and_work_are_added_up_until_the_driver_fails() -> None:
    clock = ManualClock()
    counters = Counted(clock, [1000.0, 1300.0, 20.0, 70.0])
    measured = GpuMeter(lambda: counters, clock=clock, pause=0.0)
    measured.start()
    assert counters.all_read.wait(30)
    # The driver was loaded again after 1300 joules, and counted to 20 by then.
    assert measured.stop() == GpuUsage(energy_joules=350.0, busy_seconds=45.0, measured_seconds=60.0)
    assert counters.closed


def test_without_counters_nothing_was_measured() -> None:
    measured = GpuMeter(lambda: None, clock=ManualClock())
    assert measured.stop() is None
    measured = GpuMeter(lambda: None, clock=ManualClock())
    measured.start()
    assert measured.stop() is None


def test_a_gpu_that_no_driver_knows_has_no_counters() -> None:
    assert NvmlCounters.open(["GPU-00000000-0000-0000-0000-000000000000"]) is None
