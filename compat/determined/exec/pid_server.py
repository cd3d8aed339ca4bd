"""Ends a command when a worker of it dies: ``python3 -m determined.exec.pid_server``."""

import sys

from resolute_launch.ranks.pid_server import main

if __name__ == "__main__":
    sys.exit(main())
