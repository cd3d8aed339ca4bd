"""A supervisor measures the GPUs of its run by NVIDIA's library: here a few lines of C, and no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clusters.control_plane import control_plane
from support.clusters.supervisors import supervised
from support.planted_nvml import DEVICE, plant


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the library."""
    return plant(tmp_path_factory.mktemp("driver"))


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
