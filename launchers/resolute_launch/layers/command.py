"""The command line of a layer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from resolute.info import get_cluster_info
from resolute_launch.layers.arguments import ArgumentParser, UsageError
from resolute_launch.layers.plan import LaunchPlan, LaunchRefusedError
from resolute_launch.layers.runner import run
from resolute_launch.layers.topology import Topology, read_topology

_RequestT = TypeVar("_RequestT")


def run_layer(
    grammar: ArgumentParser[_RequestT],
    plan: Callable[[_RequestT, Topology], LaunchPlan],
    arguments: Sequence[str] | None,
) -> int:
    """Parses the arguments, makes the plan, and runs it.

    Args:
        grammar: How the layer is spoken to.
        plan: Makes the plan.
        arguments: The words; default those of this process.

    Returns:
        The exit code: the script's own where one rank failed; 1 or 2 for words that cannot be understood.
    """
    try:
        request = grammar.parse(sys.argv[1:] if arguments is None else arguments)
    except UsageError as error:
        if not error.exit_code:
            sys.stdout.write(f"{grammar.help}\n")
        else:
            sys.stderr.write(f"{grammar.usage}\n{error.message}\n")
        return error.exit_code
    try:
        planned = plan(request, read_topology(get_cluster_info(), os.environ))
    except LaunchRefusedError as refusal:
        sys.stderr.write(f"{grammar.name}: {refusal}\n")
        return 1
    return run(planned, environ=os.environ)
