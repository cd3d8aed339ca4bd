"""Starts workers by ``horovodrun``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from resolute_launch.layers.command import run_layer
from resolute_launch.layers.grammar import Grammar, Request
from resolute_launch.layers.plan import (
    WRAP_RANK,
    LaunchPlan,
    LaunchRefusedError,
    direct,
    heals,
    thread_defaults,
)
from resolute_launch.layers.world import World

GRAMMAR = Grammar(
    name="determined.launch.horovod",
    overrides="HVD_OVERRIDES",
    about="Launches a script under horovodrun.",
)
RANK_VARIABLES = "HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK"
"""Where a worker finds its rank: Gloo's controller, Open MPI, MPICH."""
ARGUMENTS_KEY = "__det_dtrain_args"
"""Key of the config's ``data`` with more arguments of horovodrun."""
_MIB = 1024 * 1024


def installed() -> bool:
    """Whether there is a Horovod to run."""
    return importlib.util.find_spec("horovod") is not None


def plan(request: Request, world: World) -> LaunchPlan:
    """Plans a launch.

    Raises:
        LaunchRefusedError: The run has several containers.
    """
    if request.auto and world.workers == 1:
        return direct(request)
    if not world.alone:
        raise LaunchRefusedError(
            f"horovodrun reaches other containers by ssh, which the {world.nodes} containers of this run "
            "do not serve; launch with determined.launch.torch_distributed, or ask for slots of one machine "
            "(resources.is_single_node)"
        )
    return LaunchPlan(
        argv=(
            *(world.python, "-m", "horovod.runner.launch"),
            *("-np", str(world.workers)),
            *("-H", f"localhost:{world.workers_here}"),
            *("--start-timeout", "1200"),
            *("--gloo-timeout-seconds", "240"),
            *_tuning(world.config),
            *("--cache-capacity", "1024"),
            "--no-hierarchical-allreduce",
            "--no-hierarchical-allgather",
            *(["--verbose"] if world.config.get("debug") else []),
            *_configured(world.config),
            *request.overrides,
            # No separator: horovodrun would take it for the program.
            *(world.python, "-m", WRAP_RANK, RANK_VARIABLES, "--"),
            *request.script,
        ),
        environment={"USE_HOROVOD": "1", "DET_CHIEF_IP": world.chief},
        defaults=thread_defaults(world),
        # horovodrun takes a job of Slurm for its own.
        dropped=frozenset({"SLURM_JOBID"}),
        heals=heals(request),
    )


def _tuning(config: Mapping[str, Any]) -> tuple[str, ...]:
    section = config.get("optimizations") or {}
    if section.get("auto_tune_tensor_fusion"):
        return ("--autotune",)
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


def _plan_if_installed(request: Request, world: World) -> LaunchPlan:
    planned = plan(request, world)
    if not planned.in_place and not installed():
        raise LaunchRefusedError(
            "Horovod is not installed for the Python that launches: install it, built for the torch "
            "in use (HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 pip install horovod), or launch with "
            "determined.launch.torch_distributed"
        )
    return planned


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(GRAMMAR, _plan_if_installed, arguments)


if __name__ == "__main__":
    sys.exit(main())
