"""Runs one worker that a pid_server watches: ``python3 -m determined.exec.pid_client``."""

import sys

from resolute_launch.ranks.pid_client import main

if __name__ == "__main__":
    sys.exit(main())
