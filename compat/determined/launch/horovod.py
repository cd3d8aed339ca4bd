"""Starts the workers by horovodrun: ``python3 -m determined.launch.horovod``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.layers.horovod import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
