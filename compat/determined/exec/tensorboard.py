"""Serves TensorBoard as a task: ``python3 -m determined.exec.tensorboard``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.exec.tensorboard import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
