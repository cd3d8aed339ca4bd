"""Starts workers by DeepSpeed's launcher on every container of the run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from resolute.remains import SHARED_MEMORY, buffer_prefix
from resolute_launch.grace import inner_grace
from resolute_launch.layers.command import run_layer
from resolute_launch.layers.grammar import Grammar, Request
from resolute_launch.layers.plan import (
    WRAP_RANK,
    LaunchPlan,
    LaunchRefusedError,
    heals,
    last_value,
    network_defaults,
    thread_defaults,
)
from resolute_launch.layers.world import World

GRAMMAR = Grammar(
    name="determined.launch.deepspeed",
    overrides="DEEPSPEED_ARGS",
    about="Launches a script under DeepSpeed's launcher.",
)
HOSTFILE_VARIABLE = "DET_DEEPSPEED_HOSTFILE_PATH"
_CHOICES = frozenset({"-i", "--include", "-e", "--exclude"})


def plan(request: Request, world: World) -> LaunchPlan:
    """Plans the part of this container."""
    hostfile = world.folder / "deepspeed-hostfile"
    environment = {"USE_DEEPSPEED": "1", "DET_CHIEF_IP": world.chief}
    if not world.alone:
        environment[HOSTFILE_VARIABLE] = str(hostfile)
    return LaunchPlan(
        argv=(
            *(world.python, "-m", "deepspeed.launcher.runner"),
            *_place(request, world, hostfile),
            *("--master_addr", world.chief),
            *("--master_port", str(world.port)),
            "--no_python",
            "--no_local_rank",
            *request.overrides,
            *_devices(world),
            *(world.python, "-m", WRAP_RANK, "RANK", "--"),
            *request.script,
        ),
        environment=environment,
        defaults={
            **thread_defaults(world),
            **network_defaults(world),
            **({} if world.gpu else {"DS_ACCELERATOR": "cpu"}),
        },
        files={} if world.alone else {hostfile: _hosts(world)},
        remains=_buffers(request, world),
        # Its runner and its launcher stand between this layer and the ranks.
        grace_seconds=inner_grace(inner_grace(world.grace_seconds)),
        whole_group=True,
        heals=heals(request),
    )


def _place(request: Request, world: World, hostfile: Path) -> tuple[str, ...]:
    if world.alone:
        # It takes a count or a choice of devices, never both.
        chosen = any(word.partition("=")[0] in _CHOICES for word in request.overrides)
        count = () if chosen else ("--num_gpus", str(world.workers_here))
        # By default it reads a file that an administrator may have left; no file means this machine.
        return ("--hostfile", "", *count)
    # Every container starts its own part, so that none needs a way into the others.
    return ("--hostfile", str(hostfile), "--no_ssh", "--node_rank", str(world.node_rank))


def _hosts(world: World) -> str:
    """Names of hosts must differ, and containers of one machine have one address."""
    distinct = len(set(world.addresses)) == world.nodes
    names = world.addresses if distinct else [f"node{rank}" for rank in range(world.nodes)]
    return "".join(f"{name} slots={slots}\n" for name, slots in zip(names, world.slots, strict=True))


def _buffers(request: Request, world: World) -> tuple[Path, ...]:
    """Memory by which ranks of one machine exchange tensors: 67 MB each, and DeepSpeed leaves it behind."""
    if not world.alone:
        return ()
    port = last_value(request, "--master_port") or str(world.port)
    # On one machine its runner takes this address, whatever it was told.
    name = f"{buffer_prefix()}127.0.0.1_{port}"
    return tuple(SHARED_MEMORY / f"{name}_{rank}" for rank in range(world.workers))


def _devices(world: World) -> tuple[str, ...]:
    """Its launcher numbers GPUs from 0, whatever the container was given; the workers are told again."""
    if not world.gpu or not world.visible_devices:
        return ()
    return ("env", f"CUDA_VISIBLE_DEVICES={world.visible_devices}")


def _plan_if_installed(request: Request, world: World) -> LaunchPlan:
    if importlib.util.find_spec("deepspeed") is None:
        raise LaunchRefusedError(
            "DeepSpeed is not installed for the Python that launches: install deepspeed "
            "(DS_BUILD_OPS=0 pip install deepspeed), or launch with determined.launch.torch_distributed"
        )
    return plan(request, world)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(GRAMMAR, _plan_if_installed, arguments)


if __name__ == "__main__":
    sys.exit(main())
