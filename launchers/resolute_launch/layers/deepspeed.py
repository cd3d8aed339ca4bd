"""Starts workers by DeepSpeed's launcher on every container of the run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from resolute.contracts.run.external_resources import SHARED_MEMORY, buffer_prefix
from resolute_launch.layers.arguments import LaunchArgumentParser, Request
from resolute_launch.layers.command import run_layer
from resolute_launch.layers.plan import (
    WRAP_RANK,
    LaunchPlan,
    LaunchRefusedError,
    last_value,
    network_defaults,
    restarts_ranks,
    thread_defaults,
)
from resolute_launch.layers.topology import Topology
from resolute_launch.processes.grace_period import layer_grace_period

PARSER = LaunchArgumentParser(
    name="determined.launch.deepspeed",
    overrides="DEEPSPEED_ARGS",
    overrides_are_options=True,
    about="Launches a script under DeepSpeed's launcher.",
)
HOSTFILE_VARIABLE = "DET_DEEPSPEED_HOSTFILE_PATH"
_CHOICES = frozenset({"-i", "--include", "-e", "--exclude"})


def plan(request: Request, topology: Topology) -> LaunchPlan:
    """Plans the part of this container."""
    hostfile = topology.folder / "deepspeed-hostfile"
    environment = {"USE_DEEPSPEED": "1", "DET_CHIEF_IP": topology.chief}
    if not topology.single_container:
        environment[HOSTFILE_VARIABLE] = str(hostfile)
    return LaunchPlan(
        argv=(
            *(topology.python, "-m", "deepspeed.launcher.runner"),
            *_place(request, topology, hostfile),
            *("--master_addr", topology.chief),
            *("--master_port", str(topology.port)),
            "--no_python",
            "--no_local_rank",
            *request.overrides,
            *_devices(topology),
            *(topology.python, "-m", WRAP_RANK, "RANK", "--"),
            *request.script,
        ),
        environment=environment,
        defaults={
            **thread_defaults(topology),
            **network_defaults(topology),
            **({} if topology.gpu else {"DS_ACCELERATOR": "cpu"}),
        },
        files={} if topology.single_container else {hostfile: _hosts(topology)},
        external_resources=_buffers(request, topology),
        # Its runner and its launcher stand between this layer and the ranks.
        grace_seconds=layer_grace_period(layer_grace_period(topology.grace_seconds)),
        signals_process_group=True,
        restarts_ranks=restarts_ranks(request),
    )


def _place(request: Request, topology: Topology, hostfile: Path) -> tuple[str, ...]:
    if topology.single_container:
        # It takes a count or a choice of devices, never both.
        chosen = any(word.partition("=")[0] in _CHOICES for word in request.overrides)
        count = () if chosen else ("--num_gpus", str(topology.workers_here))
        # By default it reads a file that an administrator may have left; no file means this machine.
        return ("--hostfile", "", *count)
    # Every container starts its own part, so that none needs a way into the others.
    return ("--hostfile", str(hostfile), "--no_ssh", "--node_rank", str(topology.node_rank))


def _hosts(topology: Topology) -> str:
    """Names of hosts must differ, and containers of one machine have one address."""
    distinct = len(set(topology.addresses)) == topology.nodes
    names = topology.addresses if distinct else [f"node{rank}" for rank in range(topology.nodes)]
    return "".join(f"{name} slots={slots}\n" for name, slots in zip(names, topology.slots, strict=True))


def _buffers(request: Request, topology: Topology) -> tuple[Path, ...]:
    """Memory by which ranks of one machine exchange tensors: 67 MB each, and DeepSpeed leaves it behind."""
    if not topology.single_container:
        return ()
    port = last_value(request, "--master_port") or str(topology.port)
    # On one machine its runner takes this address, whatever was configured.
    name = f"{buffer_prefix()}127.0.0.1_{port}"
    return tuple(SHARED_MEMORY / f"{name}_{rank}" for rank in range(topology.workers))


def _devices(topology: Topology) -> tuple[str, ...]:
    """DeepSpeed's launcher always numbers GPUs from 0; this sets the container's own list for the workers."""
    if not topology.gpu or not topology.visible_devices:
        return ()
    return ("env", f"CUDA_VISIBLE_DEVICES={topology.visible_devices}")


def _plan_if_installed(request: Request, topology: Topology) -> LaunchPlan:
    if importlib.util.find_spec("deepspeed") is None:
        raise LaunchRefusedError(
            "DeepSpeed is not installed for the Python that launches: install deepspeed "
            "(DS_BUILD_OPS=0 pip install deepspeed), or launch with determined.launch.torch_distributed"
        )
    return plan(request, topology)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(PARSER, _plan_if_installed, arguments)


if __name__ == "__main__":
    sys.exit(main())
