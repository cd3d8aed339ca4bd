"""Runs one worker that a pid_server watches: ``python3 -m determined.exec.pid_client``."""

import sys

from resolute_launch.ranks import pid_client

if __name__ == "__main__":
    sys.exit(pid_client.main())

sys.modules[__name__] = pid_client
