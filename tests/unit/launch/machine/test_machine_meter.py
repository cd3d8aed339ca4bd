"""What the machine of a container does: measured by the files of the kernel, thinned with age, and sent."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.clocks import ManualClock
from support.planted_nvml import DEVICE, plant
from support.waiting import wait_until

from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import UnavailableError
from resolute_launch.machine.meter import MachineMeter
from resolute_launch.machine.periods import MOST, MOST_NAMES, Periods
from resolute_launch.machine.readings import MachineFiles, Readings

STAT = "cpu  {busy} 0 0 {idle} 50 0 0 0 9 9\ncpu0 1 2 3 4\n"
MEMINFO = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    250 kB\n"
DISKS = """
   8       0 sda 10 0 {read} 0 20 0 {written} 0 0 0 0
   8       1 sda1 10 0 {read} 0 20 0 {written} 0 0 0 0
 259       0 nvme0n1 1 0 8 0 1 0 16 0 0 0 0
 259       1 nvme0n1p1 1 0 8 0 1 0 16 0 0 0 0
   7       0 loop0 1 0 999 0 1 0 999 0 0 0 0
"""
NETWORK = """Inter-|   Receive  |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes
    lo: 5000 1 0 0 0 0 0 0 5000 1 0 0 0 0 0 0
  eth0: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0
"""


@pytest.fixture
def files(tmp_path: Path) -> MachineFiles:
    (tmp_path / "proc" / "net").mkdir(parents=True)
    (tmp_path / "group").mkdir()
    made = MachineFiles(proc=tmp_path / "proc", group=tmp_path / "group")
    write(made, busy=100, idle=100, read=2, written=4, received=1000, sent=10)
    return made


def write(files: MachineFiles, **values: int) -> None:
    (files.proc / "stat").write_text(STAT.format(**values))
    (files.proc / "meminfo").write_text(MEMINFO)
    (files.proc / "diskstats").write_text(DISKS.format(**values))
    (files.proc / "net" / "dev").write_text(NETWORK.format(**values))


def test_rates_are_those_since_the_last_reading(files: MachineFiles) -> None:
    clock = ManualClock()
    readings = Readings((), clock=clock, files=files)
    write(files, busy=130, idle=110, read=22, written=4, received=3000, sent=20)
    clock.advance(10.0)
    assert readings.read() == pytest.approx(
        {
            "cpu": 75.0,
            "memory": 75.0,
            "disk_read": 1024.0,
            "disk_write": 0.0,
            "net_received": 200.0,
            "net_sent": 1.0,
        }
    )


def test_memory_is_that_of_the_container_where_it_has_a_limit(files: MachineFiles) -> None:
    readings = Readings((), clock=ManualClock(), files=files)
    (files.group / "memory.current").write_text("900\n")
    (files.group / "memory.stat").write_text("anon 1\ninactive_file 400\n")
    (files.group / "memory.max").write_text("max\n")
    assert readings.read()["memory"] == 75.0
    (files.group / "memory.max").write_text("1000\n")
    assert readings.read()["memory"] == 50.0


def test_what_the_kernel_does_not_tell_is_left_out(tmp_path: Path) -> None:
    nothing = MachineFiles(proc=tmp_path, group=tmp_path)
    assert Readings((), clock=ManualClock(), files=nothing).read() == {}


def test_this_machine_tells_of_itself() -> None:
    values = Readings((), clock=SYSTEM_CLOCK).read()
    assert 0 < values["memory"] < 100


def test_gpus_of_the_run_are_read_by_their_driver(tmp_path: Path) -> None:
    code = (
        "import json; from resolute.contracts.clock import SYSTEM_CLOCK; "
        "from resolute_launch.machine.readings import Readings; "
        f"print(json.dumps([Readings([name], clock=SYSTEM_CLOCK).read() for name in ('{DEVICE}', '0', '1')]))"
    )
    folder = plant(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    by_name, by_number, another = json.loads(done.stdout)
    assert by_name[f"{DEVICE}.gpu_temperature"] == 88.0
    assert by_name[f"{DEVICE}.gpu_util"] == by_number[f"{DEVICE}.gpu_util"] == 25.0
    assert not any("gpu" in name for name in another)
    # Of the processes those that have most of its memory.
    assert {name: value for name, value in by_name.items() if "process" in name} == {
        f"{DEVICE}.{pid}.gpu_process_memory": 1000.0 * (pid - 100) for pid in (102, 103, 104, 105)
    } | {f"{DEVICE}.105.gpu_process_util": 20.0}


def test_links_of_gpus_are_rates_by_the_clock(tmp_path: Path) -> None:
    code = (
        "import json; from support.clocks import ManualClock; "
        "from resolute_launch.machine.readings import Readings; "
        f"clock = ManualClock(); readings = Readings(['{DEVICE}'], clock=clock); "
        "first = readings.read(); clock.advance(8.0); print(json.dumps([first, readings.read()]))"
    )
    environ = {"LD_LIBRARY_PATH": str(plant(tmp_path)), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    first, second = json.loads(done.stdout)
    assert f"{DEVICE}.gpu_nvlink_sent" not in first
    assert second[f"{DEVICE}.gpu_nvlink_sent"] == (1 << 20) / 8
    assert not {name for name in second if name.endswith("gpu_nvlink_received")}
    assert not {name for name in second if name.endswith("gpu_process_util")}, "none was sampled meanwhile"


@pytest.mark.parametrize("seed", range(5))
def test_a_history_stays_bounded_and_keeps_its_means(seed: int) -> None:
    numbers, periods = random.Random(seed), Periods()
    seconds = total = measured = 0.0
    for step in range(20_000):
        length, value = numbers.choice([5.0, 5.0, 5.0, 60.0]), numbers.uniform(0, 100)
        values = {"cpu": value} | ({"gpu": 1.0} if step % 3 else {})
        periods.add(length, values)
        seconds, total = seconds + length, total + length * value
        measured += length if step % 3 else 0.0
    kept = periods.all()
    assert len(kept) == MOST
    assert sum(period.seconds for period in kept) == pytest.approx(seconds)
    assert sum(period.mean("cpu") * period.seconds for period in kept) == pytest.approx(total)
    assert sum(period.weights.get("gpu", 0.0) for period in kept) == pytest.approx(measured)
    # Old ones are long and new ones short, in proportion to their age.
    age = 0.0
    for period in reversed(kept):
        age += period.seconds
        assert period.seconds <= 60.0 or period.seconds < age * 0.25
    assert max(period.seconds for period in kept[-10:]) <= 60.0


def test_a_value_that_was_not_measured_is_no_number() -> None:
    periods = Periods(most=2)
    periods.add(5.0, {"cpu": 10.0})
    periods.add(5.0, {})
    assert math.isnan(periods.all()[1].mean("cpu"))
    periods.add(5.0, {"cpu": 30.0})
    assert [period.mean("cpu") for period in periods.all()] == [10.0, 30.0]


def test_processes_that_come_and_go_take_no_more_room_than_others() -> None:
    periods = Periods(most=20)
    for step in range(3000):
        periods.add(5.0, {"cpu": 50.0, f"GPU.{step}.gpu_process_memory": 1.0})
    assert len(periods.names()) == MOST_NAMES
    assert max(len(period.means) for period in periods.all()) <= MOST_NAMES
    assert {period.mean("cpu") for period in periods.all()} == {50.0}


class Recorded:
    """Readings that a test sees, and what was recorded of them."""

    def __init__(self, *, fails: bool = False) -> None:
        self.usages: list[MachineUsage] = []
        self.closed = threading.Event()
        self._fails = fails

    def read(self) -> dict[str, float]:
        return {"cpu": 40.0}

    def close(self) -> None:
        self.closed.set()

    def report(self, usage: MachineUsage) -> None:
        self.usages.append(usage)
        if self._fails:
            raise UnavailableError("nobody answers")

    def meter(self, *, pause: float = 0.001, report_every: float = 0.0) -> MachineMeter:
        return MachineMeter(
            lambda: self,
            report=self.report,
            node="desk",
            clock=SYSTEM_CLOCK,
            pause=pause,
            report_every=report_every,
        )


@pytest.mark.parametrize("fails", [False, True])
def test_all_is_told_again_and_again_and_at_the_end(fails: bool) -> None:
    recorded = Recorded(fails=fails)
    meter = recorded.meter()
    meter.start()
    wait_until(lambda: len(recorded.usages) >= 3, what="three messages")
    meter.stop(60.0)
    last = recorded.usages[-1]
    assert (last.node, [one.name for one in last.series]) == ("desk", ["cpu"])
    assert list(last.series[0].values) == [pytest.approx(40.0)] * len(last.seconds)
    assert len(last.seconds) >= 3
    assert recorded.closed.is_set()


def test_nothing_is_told_of_a_run_that_ends_at_once() -> None:
    recorded = Recorded()
    meter = recorded.meter(pause=60.0)
    meter.start()
    meter.stop(60.0)
    assert recorded.usages == []


def test_a_machine_that_cannot_be_measured_ends_nothing() -> None:
    def fails() -> Recorded:
        raise OSError("no such file")

    meter = MachineMeter(fails, report=Recorded().report, node="desk", clock=SYSTEM_CLOCK)
    meter.start()
    meter.stop(60.0)
