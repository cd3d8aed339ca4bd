"""Ends a command when a worker of it dies: ``python3 -m determined.exec.pid_server``."""

import sys

from resolute_launch.ranks import pid_server

if __name__ == "__main__":
    sys.exit(pid_server.main())

sys.modules[__name__] = pid_server
