"""Starts workers by ``horovodrun``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resolute.constants import (
    HOROVOD_AUTOTUNE_LOG_FILEPATH,
    HOROVOD_GLOO_TIMEOUT_SECONDS,
    HOROVOD_STARTUP_TIMEOUT_SECONDS,
)
from resolute_launch.grace import inner_grace
from resolute_launch.horovod_part import host_name
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
    hidden_auto=True,
)
RANK_VARIABLES = "HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK"
"""Where a worker finds its rank: Gloo's controller, Open MPI, MPICH."""
ARGUMENTS_KEY = "__det_dtrain_args"
"""Key of the config's ``data`` with more arguments of horovodrun."""
PART = "resolute_launch.horovod_part"
"""Starts the ranks of one container, where there are several."""
_MIB = 1024 * 1024


def installed() -> bool:
    """Whether there is a Horovod to run."""
    return importlib.util.find_spec("horovod") is not None


def plan(request: Request, world: World) -> LaunchPlan:
    """Plans the part of this container."""
    if request.auto and world.workers == 1:
        return direct(request)
    return LaunchPlan(
        argv=(
            *_launcher(world),
            *("-np", str(world.workers)),
            *("-H", _hosts(world)),
            *("--start-timeout", str(HOROVOD_STARTUP_TIMEOUT_SECONDS)),
            *("--gloo-timeout-seconds", str(HOROVOD_GLOO_TIMEOUT_SECONDS)),
            *_tuning(world),
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
        grace_seconds=inner_grace(world.grace_seconds),
        # horovodrun takes a job of Slurm for its own.
        dropped=frozenset({"SLURM_JOBID"}),
        hand_over=world.alone,
        heals=heals(request),
    )


def _launcher(world: World) -> tuple[str, ...]:
    if world.alone:
        return (world.python, "-m", "horovod.runner.launch")
    return (world.python, "-m", PART, str(world.node_rank), world.chief, str(world.port))


def _hosts(world: World) -> str:
    if world.alone:
        return f"localhost:{world.workers_here}"
    return ",".join(f"{host_name(node)}:{slots}" for node, slots in enumerate(world.slots))


def _tuning(world: World) -> tuple[str, ...]:
    section = world.config.get("optimizations") or {}
    if section.get("auto_tune_tensor_fusion"):
        # The documented name, in a folder where no other trial of the machine writes.
        log = world.folder / Path(HOROVOD_AUTOTUNE_LOG_FILEPATH).name
        return ("--autotune", "--autotune-log-file", str(log))
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
