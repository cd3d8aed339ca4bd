"""Checks of the GPU usage that supervisors report."""

from __future__ import annotations

import math

from resolute.api.experiments.v1.run_pb2 import GpuUsage
from resolute_experiments.store.runs import Run
from resolute_serving.validation import invalid

_MOST = 1e15
"""Joules or seconds; a run of a thousand GPUs for a century has less."""


def check_usage(usage: GpuUsage) -> None:
    """Checks that measured values can be true.

    Raises:
        InvalidArgumentError: One is negative, no number, or too large.
    """
    for name in ("energy_joules", "busy_seconds", "measured_seconds"):
        value = getattr(usage, name)
        if not (math.isfinite(value) and 0 <= value <= _MOST):
            raise invalid(f"gpu_usage.{name}", f"gpu_usage.{name} is {value}; it is from 0 to {_MOST:g}")
    if usage.busy_seconds > usage.measured_seconds:
        raise invalid(
            "gpu_usage.busy_seconds",
            f"gpu_usage.busy_seconds is {usage.busy_seconds}, of {usage.measured_seconds} measured seconds",
        )


def added_usage(run: Run, usage: GpuUsage) -> dict[str, float | None]:
    """Adds what one container reports to what others have reported, as columns of the run."""
    energy = run.gpu_energy_joules
    if usage.HasField("energy_joules"):
        energy = (energy or 0.0) + usage.energy_joules
    return {
        "gpu_energy_joules": energy,
        "gpu_busy_seconds": (run.gpu_busy_seconds or 0.0) + usage.busy_seconds,
        "gpu_measured_seconds": (run.gpu_measured_seconds or 0.0) + usage.measured_seconds,
    }
