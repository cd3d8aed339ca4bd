"""The slots of this machine: its GPUs, or else its processor cores."""

from __future__ import annotations

import os
import shutil
import subprocess

from resolute.errors import InvalidArgumentError
from resolute_experiments.resources.base import Slot, SlotKind

_NVIDIA_SMI_SECONDS = 20.0


def detect_slots(wanted: int | None = None) -> tuple[Slot, ...]:
    """Counts the slots of this machine.

    Args:
        wanted: So many slots instead of all; with more than there are GPUs all are shares of the processor.

    Raises:
        InvalidArgumentError: ``wanted`` is below one.
    """
    if wanted is not None and wanted < 1:
        raise InvalidArgumentError(f"{wanted} slots were asked for; a machine has at least one")
    gpus = gpu_count()
    if gpus and (wanted is None or wanted <= gpus):
        return tuple(Slot(number, SlotKind.GPU) for number in range(wanted or gpus))
    cores = len(os.sched_getaffinity(0))
    return tuple(Slot(number, SlotKind.CPU) for number in range(wanted or cores))


def gpu_count() -> int:
    """Counts NVIDIA GPUs; zero where the driver's tool is missing or fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    try:
        listing = subprocess.run(
            [tool, "--list-gpus"], capture_output=True, text=True, check=True, timeout=_NVIDIA_SMI_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listing.stdout.splitlines())
