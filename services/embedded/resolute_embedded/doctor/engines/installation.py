"""Whether the nodes of an engine have Resolute, of the version of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from resolute_embedded.doctor.findings import Finding, fault

CODE = """\
import sys
from resolute.contracts.distribution import version
import resolute_launch.node
sys.exit(f"its version is {version()}" if version() != sys.argv[1] else 0)
"""
"""Python that fails on a node without Resolute of the version that follows it."""
_WORDS = 1000
"""How much of what nodes said is shown."""


def broken(subject: str, complaints: Mapping[str, str], *, nodes: int, place: str, remedy: str) -> Finding:
    """Finds that Resolute cannot be used on some nodes.

    Args:
        subject: What was looked at.
        complaints: What these nodes said.
        nodes: How many nodes there are.
        place: Where Resolute should be.
        remedy: What to do.
    """
    words = "; ".join(f"{node}: {complaint}" for node, complaint in complaints.items())[:_WORDS]
    return fault(
        subject, f"Resolute cannot be used at {place} on {len(complaints)} of {nodes}: {words}", remedy=remedy
    )
