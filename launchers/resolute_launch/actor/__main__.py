"""Keeps the supervisor of an actor: ``python -m resolute_launch.actor FOLDER``, a child of nobody."""

import os
import sys
from pathlib import Path

from resolute_launch.actor.keeper import keep

# Ray kills the children of a worker with it, and who keeps a supervisor must outlive that to end it.
if os.fork():
    os._exit(0)
sys.exit(keep(Path(sys.argv[1]), heard=sys.stdin, told=sys.stdout))
