"""A supervisor measures the GPUs of its run by NVIDIA's library: here a few lines of C, and no GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.backends import missing, need_module
from support.clusters.control_plane import control_plane
from support.clusters.supervisors import supervised

DEVICE = "GPU-11111111-2222-3333-4444-555555555555"
LIBRARY = r"""
/* The part of NVML that is called: a GPU that takes a joule at each reading, and works 25 % of the time. */
#include <string.h>
static unsigned long long millijoules = 5000;
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned int flags) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "not found"; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    static int gpu;
    if (strcmp(uuid, "GPU-11111111-2222-3333-4444-555555555555")) return 6;
    *handle = &gpu;
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *energy) {
    *energy = millijoules;
    millijoules += 1000;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned int *rates) {
    rates[0] = 25;
    rates[1] = 0;
    return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the library."""
    need_module("pynvml")
    compiler = shutil.which("cc")
    if compiler is None:
        missing("there is no C compiler: `make backends` installs one")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(LIBRARY)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"],
        cwd=folder,
        check=True,
        timeout=120,
    )
    return folder


def test_the_exit_of_a_run_tells_what_its_gpu_did(tmp_path: Path, driver: Path) -> None:
    with (
        control_plane("echo trained") as plane,
        supervised(
            tmp_path, plane, environ={"LD_LIBRARY_PATH": str(driver)}, slot_kind="gpu", devices=(DEVICE,)
        ) as run,
    ):
        run.wait(60)
        (exit_,) = plane.exits
        assert exit_.gpu_usage.energy_joules >= 1.0
        assert exit_.gpu_usage.measured_seconds > 0
        assert exit_.gpu_usage.busy_seconds == pytest.approx(0.25 * exit_.gpu_usage.measured_seconds)
        usage = run.record().gpu_usage
        assert usage is not None
        assert usage.measured_seconds == exit_.gpu_usage.measured_seconds


@pytest.mark.parametrize("device", ["GPU-of-another-machine", ""])
def test_a_run_whose_gpu_cannot_be_measured_is_a_run_all_the_same(
    tmp_path: Path, driver: Path, device: str
) -> None:
    devices = (device,) if device else ()
    with (
        control_plane("echo trained") as plane,
        supervised(tmp_path, plane, environ={"LD_LIBRARY_PATH": str(driver)}, devices=devices) as run,
    ):
        run.wait(60)
        (exit_,) = plane.exits
        assert not exit_.exit_code
        assert not exit_.HasField("gpu_usage")
