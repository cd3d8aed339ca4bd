"""Starts the workers by Horovod where there are several: ``python3 -m determined.launch.autohorovod``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.layers.autohorovod import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
