"""What the GPUs of a run did is added up from the counters of their driver."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from support.clocks import ManualClock

from resolute.contracts.run.gpu_usage import GpuUsage
from resolute.runtime.gpu_readings import Gpus, GpuUse
from resolute_launch.gpus.idleness import Idleness, UtilizationPolicy
from resolute_launch.gpus.meter import GpuMeter


class Counted:
    """Two GPUs, of which the second has no counter of energy; each reading comes ten seconds later."""

    def __init__(self, clock: ManualClock, energies: Sequence[float], *, busy: float | None = 1.0) -> None:
        self._clock, self._energies, self.busy = clock, iter(energies), busy
        self.all_read = threading.Event()
        self.closed = False

    def use(self) -> Sequence[GpuUse]:
        energy = next(self._energies, None)
        if energy is None:
            self.all_read.set()
            raise RuntimeError("the driver is gone")
        self._clock.advance(10)
        return [GpuUse(energy_joules=energy, busy=0.5), GpuUse(energy_joules=None, busy=self.busy)]

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


@pytest.mark.parametrize(("other", "is_idle"), [(0.1, True), (None, False)])
def test_gpus_of_which_one_tells_nothing_are_not_idle(other: float | None, is_idle: bool) -> None:
    clock, said = ManualClock(), list[str]()
    counters = Counted(clock, [0.0] * 10, busy=other)
    idleness = Idleness(UtilizationPolicy(below=0.6, seconds=30.0), report=said.append)
    measured = GpuMeter(lambda: counters, clock=clock, pause=0.0, idleness=idleness)
    measured.entrypoint_runs()
    measured.start()
    assert counters.all_read.wait(30)
    measured.stop()
    assert bool(said) == is_idle


def test_gpus_that_no_driver_knows_tell_nothing() -> None:
    devices = ["GPU-00000000-0000-0000-0000-000000000000", "7777"]
    assert Gpus(devices).use() == [GpuUse(energy_joules=None, busy=None)] * 2
    measured = GpuMeter(lambda: Gpus(devices), clock=ManualClock())
    assert measured.stop() is None
    measured = GpuMeter(lambda: Gpus(devices), clock=ManualClock())
    measured.start()
    assert measured.stop() is None
