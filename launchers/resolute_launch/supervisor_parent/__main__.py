"""Forks supervisors: ``python -m resolute_launch.supervisor_parent DESCRIPTOR [PADDING]``.

DESCRIPTOR is a socket to the engine. PADDING reserves space for the command lines of forks.
"""

from __future__ import annotations

import socket
import sys

from resolute_launch.supervisor.main import main
from resolute_launch.supervisor_parent.server import serve

if __name__ == "__main__":
    run_directory = serve(socket.socket(fileno=int(sys.argv[1])))
    if run_directory is not None:
        sys.exit(main(run_directory))
