"""Starts workers by ``horovodrun``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from resolute_launch.layers.arguments import LaunchArgumentParser, Request
from resolute_launch.layers.command import run_layer
from resolute_launch.layers.horovod_node import host_name
from resolute_launch.layers.plan import (
    WRAP_RANK,
    LaunchPlan,
    LaunchRefusedError,
    direct,
    restarts_ranks,
    thread_defaults,
)
from resolute_launch.layers.topology import Topology
from resolute_launch.processes.grace_period import layer_grace_period

PARSER = LaunchArgumentParser(
    name="determined.launch.horovod",
    overrides="HVD_OVERRIDES",
    about="Launches a script under horovodrun.",
    hidden_auto=True,
)
STARTUP_TIMEOUT_SECONDS = 1200
"""Seconds that Horovod's workers get to start."""
GLOO_TIMEOUT_SECONDS = 240
"""Seconds that Horovod's workers wait for each other."""
AUTOTUNE_LOG = "autotune_log.csv"
"""File to which Horovod writes what its tuning found."""
RANK_VARIABLES = "HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK"
"""Where a worker finds its rank: Gloo's controller, Open MPI, MPICH."""
ARGUMENTS_KEY = "__det_dtrain_args"
"""Key of the config's ``data`` with more arguments of horovodrun."""
NODE_MODULE = "resolute_launch.layers.horovod_node"
"""Starts the ranks of one container, where there are several."""
_MIB = 1024 * 1024


def installed() -> bool:
    """Whether Horovod is installed."""
    return importlib.util.find_spec("horovod") is not None


def plan(request: Request, topology: Topology) -> LaunchPlan:
    """Plans the part of this container."""
    if request.auto and topology.workers == 1:
        return direct(request)
    return LaunchPlan(
        argv=(
            *_launcher(topology),
            *("-np", str(topology.workers)),
            *("-H", _hosts(topology)),
            *("--start-timeout", str(STARTUP_TIMEOUT_SECONDS)),
            *("--gloo-timeout-seconds", str(GLOO_TIMEOUT_SECONDS)),
            *_tuning(topology),
            *("--cache-capacity", "1024"),
            "--no-hierarchical-allreduce",
            "--no-hierarchical-allgather",
            *(["--verbose"] if topology.config.get("debug") else []),
            *_configured(topology.config),
            *request.overrides,
            # No separator: horovodrun would take it for the program.
            *(topology.python, "-m", WRAP_RANK, RANK_VARIABLES, "--"),
            *request.script,
        ),
        environment={"USE_HOROVOD": "1", "DET_CHIEF_IP": topology.chief},
        defaults=thread_defaults(topology),
        grace_seconds=layer_grace_period(topology.grace_seconds),
        # horovodrun takes a job of Slurm for its own.
        dropped=frozenset({"SLURM_JOBID"}),
        environment_by_file=topology.single_container,
        restarts_ranks=restarts_ranks(request),
    )


def _launcher(topology: Topology) -> tuple[str, ...]:
    if topology.single_container:
        return (topology.python, "-m", "horovod.runner.launch")
    return (topology.python, "-m", NODE_MODULE, str(topology.node_rank), topology.chief, str(topology.port))


def _hosts(topology: Topology) -> str:
    if topology.single_container:
        return f"localhost:{topology.workers_here}"
    return ",".join(f"{host_name(node)}:{slots}" for node, slots in enumerate(topology.slots))


def _tuning(topology: Topology) -> tuple[str, ...]:
    section = topology.config.get("optimizations") or {}
    if section.get("auto_tune_tensor_fusion"):
        # In a folder where no other trial of the machine writes.
        return ("--autotune", "--autotune-log-file", str(topology.folder / AUTOTUNE_LOG))
    return (
        "--fusion-threshold-mb",
        str(_mebibytes(section.get("tensor_fusion_threshold", 64))),
        "--cycle-time-ms",
        str(section.get("tensor_fusion_cycle_time", 1)),
    )


def _mebibytes(threshold: int) -> int:
    # Configs of all eras: some say it in MiB, others in bytes.
    return threshold // _MIB if threshold >= _MIB else threshold


def _configured(config: Mapping[str, Any]) -> list[str]:
    data = config.get("data")
    return [str(word) for word in data.get(ARGUMENTS_KEY) or ()] if isinstance(data, Mapping) else []


def _plan_if_installed(request: Request, topology: Topology) -> LaunchPlan:
    planned = plan(request, topology)
    if not planned.replaces_process and not installed():
        raise LaunchRefusedError(
            "Horovod is not installed for the Python that launches: install it, built for the torch "
            "in use (HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 pip install horovod), or launch with "
            "determined.launch.torch_distributed"
        )
    return planned


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(PARSER, _plan_if_installed, arguments)


if __name__ == "__main__":
    sys.exit(main())
