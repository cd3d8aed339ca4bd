"""The slots of this machine: its GPUs, or its processor cores if it has no GPUs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace

from resolute.errors import InvalidArgumentError
from resolute_engines.protocol import Slot, SlotKind

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
"""Names the GPUs that this process may use, and with it all that it starts."""
_NVIDIA_SMI_SECONDS = 20.0
_LISTED = re.compile(r"GPU (\d+): .*\(UUID: (GPU-[0-9a-fA-F-]+)\)")


def detect_slots(wanted: int | None = None) -> tuple[Slot, ...]:
    """Counts the slots of this machine.

    Args:
        wanted: So many slots instead of all; with more than there are GPUs all are shares of the processor.

    Raises:
        InvalidArgumentError: ``wanted`` is below one.
    """
    if wanted is not None and wanted < 1:
        raise InvalidArgumentError(f"{wanted} slots were asked for; a machine has at least one")
    devices = usable_gpus(list_gpus(), os.environ)
    if devices and (wanted is None or wanted <= len(devices)):
        return tuple(Slot(number, SlotKind.GPU, device) for number, device in enumerate(devices[:wanted]))
    cores = len(os.sched_getaffinity(0))
    return tuple(Slot(number, SlotKind.CPU) for number in range(wanted or cores))


def assign_to_nodes(slots: Sequence[Slot], nodes: int) -> tuple[Slot, ...]:
    """Spreads slots over as many nodes, each of them a row of neighbours.

    Raises:
        InvalidArgumentError: Some node would have no slot.
    """
    if not 1 <= nodes <= len(slots):
        raise InvalidArgumentError(f"{len(slots)} slots cannot be shared by {nodes} nodes: each has one")
    return tuple(replace(slot, node=position * nodes // len(slots)) for position, slot in enumerate(slots))


def usable_gpus(listing: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Returns the GPUs that this process may give away.

    Args:
        listing: UUID of each GPU of the machine, by number.
        environ: May restrict them by ``CUDA_VISIBLE_DEVICES``: numbers, UUIDs, or parts of GPUs, which are
            taken as they are. As in CUDA, the list ends before the first entry that names no GPU.
    """
    restriction = environ.get(VISIBLE_DEVICES)
    if restriction is None or not listing:
        return list(listing)
    devices: list[str] = []
    for entry in (part.strip() for part in restriction.split(",")):
        if entry.isdecimal() and int(entry) < len(listing):
            devices.append(listing[int(entry)])
        elif entry.startswith(("GPU-", "MIG-")):
            devices.append(entry)
        else:
            break
    return devices


def list_gpus() -> list[str]:
    """Returns the UUIDs of the NVIDIA GPUs by number; none where the driver's tool is missing or fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        done = subprocess.run(
            [tool, "--list-gpus"], capture_output=True, text=True, check=True, timeout=_NVIDIA_SMI_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [match[2] for match in _LISTED.finditer(done.stdout)]
