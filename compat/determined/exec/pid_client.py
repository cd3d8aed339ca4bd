"""Runs one worker that a pid_server watches: ``python3 -m determined.exec.pid_client``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.ranks.pid_client import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
