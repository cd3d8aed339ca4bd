"""Checks whether nodes have Resolute in the version of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.contracts.distribution import version
from resolute_engines.protocol import NodeCheck

CHECK = """\
import sys
from resolute.contracts.distribution import version
import resolute_launch.node
sys.exit(f"its version is {version()}" if version() != sys.argv[1] else 0)
"""
"""Python that fails on a node without Resolute of the version that follows it."""
_LONGEST_OUTPUT = 1000
"""Most characters of what nodes printed that are shown."""


def missing_on(printed: Mapping[str, str], *, nodes: int, place: str, page: str, pool: str = "") -> NodeCheck:
    """The check of nodes of which some cannot use Resolute.

    Args:
        printed: What the check printed on each node where it failed.
        nodes: How many nodes there are.
        place: Where Resolute should be.
        page: The page that says how it is installed there.
        pool: The pool whose nodes they are; empty for all nodes of the engine.
    """
    listed = "; ".join(f"{node}: {text}" for node, text in printed.items())[:_LONGEST_OUTPUT]
    return NodeCheck(
        pool=pool,
        usable=False,
        detail=f"Resolute cannot be used at {place} on {len(printed)} of {nodes}: {listed}",
        remedy=f"install version {version()} there, at a path that all nodes share: {page}",
    )
