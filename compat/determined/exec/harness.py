"""Runs a Trial class: ``python3 -m determined.exec.harness module:Class``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.exec.harness import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
