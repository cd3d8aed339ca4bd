"""Samples of the machine."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.planted_nvml import DEVICE, plant
from support.training.ranks.threads import rank_results

from resolute.contracts.spool.format import Media
from resolute.core import DistributedContext, DummyDistributedContext, DummyProfilerContext, ProfilerContext
from resolute.core.system_metrics import Averages, MachineSampler, Samples
from resolute.spool.omissions import Raised


class Reports:
    def __init__(self, wanted: int) -> None:
        self.omissions = Raised()
        self.made: list[tuple[str, int, dict[str, Any]]] = []
        self.wanted = wanted
        self.enough = threading.Event()

    def report(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        self.made.append((group, steps, dict(metrics)))
        if len(self.made) >= self.wanted:
            self.enough.set()

    def flush(self, timeout: float | None = None) -> None: ...

    def confirm(self) -> None: ...

    def log_media(self, media: Media) -> None: ...

    def close(self) -> None: ...


def profiler_of(reports: Reports, dist: DistributedContext | None = None) -> ProfilerContext:
    return ProfilerContext(
        dist or DummyDistributedContext(), reporter=reports, agent="agent", open_sampler=MachineSampler
    )


def test_samples_of_the_machine_are_reported() -> None:
    reports = Reports(wanted=8)
    profiler = profiler_of(reports)
    profiler.on(sampling_interval=0.1, samples_per_report=1)
    profiler.on(sampling_interval=0.1, samples_per_report=1)
    assert reports.enough.wait(60)
    profiler.off()
    profiler.off()

    assert {group for group, _, _ in reports.made} >= {"cpu", "memory", "disk", "network"}
    memory = [metrics for group, _, metrics in reports.made if group == "memory"]
    assert memory[0]["agent.memory_free"] > 0
    cpu_steps = [steps for group, steps, _ in reports.made if group == "cpu"]
    assert cpu_steps == list(range(1, len(cpu_steps) + 1))
    assert not [thread for thread in threading.enumerate() if thread.name == "resolute-profiler"]


def test_the_rest_is_reported_at_the_end() -> None:
    sampled = threading.Event()

    class Sampler:
        def sample(self) -> Samples:
            sampled.set()
            return {"cpu": {"util": 50.0}}

        def close(self) -> None: ...

    reports = Reports(wanted=1)
    profiler = ProfilerContext(
        DummyDistributedContext(), reporter=reports, agent="agent", open_sampler=Sampler
    )
    profiler.on(sampling_interval=0.1, samples_per_report=1000)
    assert sampled.wait(60)
    profiler.close()
    assert reports.made == [("cpu", 1, {"agent.util": 50.0})]


def test_one_process_of_each_machine_samples() -> None:
    def work(dist: DistributedContext) -> bool:
        profiler = profiler_of(Reports(1), dist)
        profiler.on(sampling_interval=0.1)
        on = profiler._thread is not None
        profiler.off()
        return on

    assert rank_results(2, work) == [True, False]


@pytest.mark.parametrize("interval", [0.05, 0, -1, "1", None, True])
def test_an_interval_that_makes_no_sense_is_refused(interval: Any) -> None:
    for profiler in (DummyProfilerContext(), profiler_of(Reports(1))):
        with pytest.raises(ValueError, match="sampling_interval"):
            profiler.on(sampling_interval=interval)


@pytest.mark.parametrize("samples", [0, -1, 1.5, "10", True])
def test_a_number_of_samples_that_makes_no_sense_is_refused(samples: Any) -> None:
    for profiler in (DummyProfilerContext(), profiler_of(Reports(1))):
        with pytest.raises(ValueError, match="samples_per_report"):
            profiler.on(samples_per_report=samples)


def test_without_psutil_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(ImportError, match="pip install psutil"):
        profiler_of(Reports(1)).on()


def test_a_gpu_is_read_as_far_as_its_driver_tells(tmp_path: Path) -> None:
    code = "import json; from resolute.core.system_metrics import MachineSampler as Sampler; s = Sampler(); "
    environ = {**os.environ, "LD_LIBRARY_PATH": str(plant(tmp_path))}
    command = [sys.executable, "-c", f"{code}print(json.dumps([s.sample()['gpu'] for _ in 'ab']))"]
    shown = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=120)
    hot, cool = json.loads(shown.stdout)
    assert hot == {
        f"{DEVICE}.gpu_util": 25.0,
        f"{DEVICE}.gpu_power": 350.5,
        f"{DEVICE}.gpu_temperature": 88.0,
        f"{DEVICE}.gpu_throttled": 1.0,
        f"{DEVICE}.gpu_ecc_errors": 2.0,
        f"{DEVICE}.gpu_pcie_sent": 2e6,
        f"{DEVICE}.gpu_pcie_received": 3e6,
    }, "this one tells nothing of its memory"
    # What its links received it does not tell, and a rate is known from the second reading on.
    assert cool.pop(f"{DEVICE}.gpu_nvlink_sent") > 0
    assert cool == {**hot, f"{DEVICE}.gpu_throttled": 0.0}


def test_averages_count_what_was_sampled() -> None:
    averages = Averages()
    averages.add({"cpu": {"util": 10.0}})
    averages.add({"cpu": {"util": 20.0, "heat": 5.0}})
    assert averages.take() == {"cpu": {"util": 15.0, "heat": 5.0}}
    assert averages.count == 0
    assert averages.take() == {}
