"""Runs one of the two processes of a Pod: ``python -m resolute_launch.pod keep|send``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from resolute_launch.pod.sender import send
from resolute_launch.pod.shim import keep


def main() -> int:
    """Is one of the two."""
    parser = argparse.ArgumentParser(prog="resolute_launch.pod", description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    shim = parts.add_parser("keep", help="starts the supervisor, and ends what it leaves running")
    for option, field, words in (
        ("--order", "order", "the launch order"),
        ("--asked", "asked", "file in which words appear of what is asked: stop, kill"),
        ("--last-word", "termination_message", "file for how the run ended"),
    ):
        shim.add_argument(option, dest=field, type=Path, required=True, help=words)
    sender = parts.add_parser("send", help="sends what the supervisor left, once its container has ended")
    for each in (shim, sender):
        each.add_argument("folder", type=Path, help="the volume of the Pod")
    options = parser.parse_args()
    if options.part == "send":
        return send(options.folder)
    return keep(
        options.folder,
        order=options.order,
        asked=options.asked,
        termination_message=options.termination_message,
    )


sys.exit(main())
