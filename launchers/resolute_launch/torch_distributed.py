"""Starts workers by ``torch.distributed.run`` (torchrun) on every container of the run."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from resolute_launch.grace import inner_grace
from resolute_launch.layers.command import run_layer
from resolute_launch.layers.grammar import Grammar, Request
from resolute_launch.layers.plan import WRAP_RANK, LaunchPlan, heals, network_defaults, thread_defaults
from resolute_launch.layers.world import World

GRAMMAR = Grammar(
    name="determined.launch.torch_distributed",
    overrides="TORCH_OVERRIDES",
    about="Launches a script under torch.distributed.run.",
)


_TORCHRUN_SECONDS = 30
"""What torchrun itself gives its ranks after SIGTERM."""


def plan(request: Request, world: World) -> LaunchPlan:
    """Plans the part of this container."""
    grace = inner_grace(world.grace_seconds)
    return LaunchPlan(
        argv=(
            *(world.python, "-m", "torch.distributed.run"),
            *("--nnodes", str(world.nodes)),
            *("--nproc_per_node", str(world.workers_here)),
            *("--node_rank", str(world.node_rank)),
            # The run restarts as a whole, from its checkpoint, rather than some of its ranks.
            *("--max_restarts", "0"),
            *("--master_addr", world.chief),
            *("--master_port", str(world.port)),
            *request.overrides,
            *("--module", WRAP_RANK, "RANK", "--"),
            *request.script,
        ),
        environment={"USE_TORCH_DISTRIBUTED": "True", "DET_CHIEF_IP": world.chief},
        defaults={
            **thread_defaults(world),
            **network_defaults(world),
            "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(max(_TORCHRUN_SECONDS, math.ceil(grace))),
        },
        grace_seconds=grace,
        heals=heals(request),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(GRAMMAR, plan, arguments)


if __name__ == "__main__":
    sys.exit(main())
