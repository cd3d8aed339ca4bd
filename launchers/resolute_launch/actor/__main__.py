"""Runs the shim of a Ray actor, detached from it, or sends the data of shims that this machine has lost.

``python -m resolute_launch.actor FOLDER``, or ``python -m resolute_launch.actor DIRECTORY PREFIX``.
"""

import os
import sys
from pathlib import Path


def main() -> int:
    """Does what the arguments say; returns 0 if everything has arrived."""
    from resolute_launch.actor.shim import keep, keep_leftovers

    if len(sys.argv) > 2:
        keep_leftovers(Path(sys.argv[1]), sys.argv[2])
        return 0
    return keep(Path(sys.argv[1]), requests=sys.stdin, answers=sys.stdout)


# Ray kills the children of a worker with it, and who keeps a supervisor must outlive that to end it. What is
# imported takes a while, in which the worker may end.
if os.fork():
    os._exit(0)
sys.exit(main())
