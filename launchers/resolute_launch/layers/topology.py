"""The containers of a launch, and the position of this container among them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resolute.contracts.run.launch_order import TERM_GRACE_SECONDS
from resolute.info import ClusterInfo
from resolute_launch import environment_variables
from resolute_launch.layers.interfaces import interface_to
from resolute_launch.processes.grace_period import supervisor_grace_period

DEFAULT_TORCH_PORT = 29400
"""Port of the rendezvous if the run has reserved none."""
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The places of the workers. The default is one worker on this machine, as outside of a cluster."""

    addresses: tuple[str, ...] = (_LOOPBACK,)
    """Address of each container, by rank."""
    slots: tuple[int, ...] = (1,)
    """Workers of each container, by rank."""
    node_rank: int = 0
    """This container."""
    port: int = DEFAULT_TORCH_PORT
    """Free port of the first container."""
    container_ports: tuple[int, ...] = ()
    """A free port of each container, by rank; empty if the run has reserved none."""
    interface: str = ""
    """Network interface by which this container reaches the first; empty if unknown or not needed."""
    gpu: bool = False
    """Whether slots are GPUs."""
    visible_devices: str = ""
    """The GPUs of this container, as ``CUDA_VISIBLE_DEVICES`` lists them."""
    folder: Path = Path(tempfile.gettempdir())
    """Directory for the files of a launch."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The experiment's config."""
    grace_seconds: float = TERM_GRACE_SECONDS
    """Seconds between SIGTERM to this layer and SIGKILL to all of it."""
    python: str = sys.executable
    """Interpreter of the launchers."""

    @property
    def nodes(self) -> int:
        """How many containers there are."""
        return len(self.addresses)

    @property
    def single_container(self) -> bool:
        """Whether this is the only container."""
        return self.nodes == 1

    @property
    def workers_here(self) -> int:
        """Workers of this container."""
        return self.slots[self.node_rank]

    @property
    def workers(self) -> int:
        """Workers of all containers."""
        return sum(self.slots)

    @property
    def chief(self) -> str:
        """Address of the first container; the loopback address if there is only one container."""
        return _LOOPBACK if self.single_container else self.addresses[0]


def read_topology(info: ClusterInfo | None, environ: Mapping[str, str]) -> Topology:
    """Determines the topology of this launch.

    Args:
        info: What the run knows of its cluster; None outside of any.
        environ: The environment of the layer.
    """
    devices = environ.get("CUDA_VISIBLE_DEVICES", "")
    if info is None:
        return Topology(visible_devices=devices)
    folder = environ.get("RESOLUTE_RUN_DIR") or tempfile.gettempdir()
    addresses = tuple(info.container_addrs)
    return Topology(
        addresses=addresses,
        # A task without slots still has one worker.
        slots=tuple(max(count, 1) for count in info.container_slot_counts),
        node_rank=info.container_rank,
        port=int(environ.get(environment_variables.C10D_PORT) or DEFAULT_TORCH_PORT),
        container_ports=_numbers(environ.get(environment_variables.CONTAINER_PORTS, "")),
        interface=_interface(info, addresses),
        gpu=bool(info.gpu_uuids) or environ.get("DET_USE_GPU") == "true",
        visible_devices=devices,
        grace_seconds=supervisor_grace_period(environ),
        folder=Path(os.path.abspath(folder)),  # noqa: PTH100  # resolves no links, unlike pathlib
        config=info.trial._config if info.task_type == "TRIAL" else {},  # noqa: SLF001 - documented name
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)


def _interface(info: ClusterInfo, addresses: tuple[str, ...]) -> str:
    if len(addresses) == 1:
        return ""
    named = info.trial._inter_node_network_interface if info.task_type == "TRIAL" else ""  # noqa: SLF001
    return named or interface_to(addresses[0])
