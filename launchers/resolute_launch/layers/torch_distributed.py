"""Starts workers by ``torch.distributed.run`` (torchrun) on every container of the run."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from resolute_launch.layers.arguments import LaunchArgumentParser, Request
from resolute_launch.layers.command import run_layer
from resolute_launch.layers.plan import (
    WRAP_RANK,
    LaunchPlan,
    network_defaults,
    restarts_ranks,
    thread_defaults,
)
from resolute_launch.layers.topology import Topology
from resolute_launch.processes.grace_period import layer_grace_period

PARSER = LaunchArgumentParser(
    name="determined.launch.torch_distributed",
    overrides="TORCH_OVERRIDES",
    about="Launches a script under torch.distributed.run.",
)


_TORCHRUN_SECONDS = 30
"""What torchrun itself gives its ranks after SIGTERM."""


def plan(request: Request, topology: Topology) -> LaunchPlan:
    """Plans the part of this container."""
    grace = layer_grace_period(topology.grace_seconds)
    return LaunchPlan(
        argv=(
            *(topology.python, "-m", "torch.distributed.run"),
            *("--nnodes", str(topology.nodes)),
            *("--nproc_per_node", str(topology.workers_here)),
            *("--node_rank", str(topology.node_rank)),
            # The run restarts as a whole, from its checkpoint, rather than some of its ranks.
            *("--max_restarts", "0"),
            *("--master_addr", topology.chief),
            *("--master_port", str(topology.port)),
            *request.overrides,
            *("--module", WRAP_RANK, "RANK", "--"),
            *request.script,
        ),
        environment={"USE_TORCH_DISTRIBUTED": "True", "DET_CHIEF_IP": topology.chief},
        defaults={
            **thread_defaults(topology),
            **network_defaults(topology),
            "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(max(_TORCHRUN_SECONDS, math.ceil(grace))),
        },
        grace_seconds=grace,
        restarts_ranks=restarts_ranks(request),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(PARSER, plan, arguments)


if __name__ == "__main__":
    sys.exit(main())
