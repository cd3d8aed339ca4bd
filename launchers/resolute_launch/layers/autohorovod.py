"""Starts several workers by Horovod, or by torch.distributed if Horovod is missing.

An entrypoint of the form ``module:Class`` is started by this layer.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from resolute_launch.layers import horovod, torch_distributed
from resolute_launch.layers.arguments import LaunchArgumentParser, Request
from resolute_launch.layers.command import run_layer
from resolute_launch.layers.plan import LaunchPlan, direct
from resolute_launch.layers.topology import Topology

PARSER = LaunchArgumentParser(
    name="determined.launch.autohorovod",
    overrides="HVD_OVERRIDES",
    about="Launches a script under horovodrun, or as it is where there is one slot.",
    hidden_auto=True,
    bare_trial=True,
)


def plan(request: Request, topology: Topology, *, has_horovod: bool) -> LaunchPlan:
    """Plans a launch.

    Args:
        request: What is wanted.
        topology: Where.
        has_horovod: Whether Horovod is installed. Without it, its overrides mean nothing and are left out.
    """
    if topology.workers == 1:
        return direct(request)
    if has_horovod:
        return horovod.plan(request, topology)
    return torch_distributed.plan(dataclasses.replace(request, overrides=()), topology)


def _plan_with_what_is_there(request: Request, topology: Topology) -> LaunchPlan:
    has_horovod = horovod.installed()
    if not has_horovod and topology.workers > 1:
        sys.stderr.write(
            f"warning: Horovod is not installed, so the {topology.workers} workers are launched by "
            "torch.distributed instead; to choose, name the layer in the entrypoint: "
            "python3 -m determined.launch.torch_distributed --trial TRIAL\n"
        )
    return plan(request, topology, has_horovod=has_horovod)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(PARSER, _plan_with_what_is_there, arguments)


if __name__ == "__main__":
    sys.exit(main())
