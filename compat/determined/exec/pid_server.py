"""Ends a command when a worker of it dies: ``python3 -m determined.exec.pid_server``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.ranks.pid_server import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
