"""Runs the shim of a Ray actor, detached from it, or sends the data of shims that this machine has lost.

``python -m resolute_launch.actor FOLDER [--lock-fd=DESCRIPTOR]``, or ``python -m resolute_launch.actor
DIRECTORY PREFIX``.
"""

import os
import sys
from pathlib import Path

_LOCK = "--lock-fd="


def main() -> int:
    """Does what the arguments say; returns 0 if everything has arrived."""
    from resolute_launch.actor.shim import keep, keep_leftovers

    place, *rest = sys.argv[1:]
    if rest and not rest[0].startswith(_LOCK):
        keep_leftovers(Path(place), rest[0])
        return 0
    descriptor = int(rest[0].removeprefix(_LOCK)) if rest else None
    return keep(Path(place), requests=sys.stdin, answers=sys.stdout, descriptor=descriptor)


# Ray kills the children of a worker with it, and who keeps a supervisor must outlive that to end it. What is
# imported takes a while, in which the worker may end.
if os.fork():
    os._exit(0)
sys.exit(main())
