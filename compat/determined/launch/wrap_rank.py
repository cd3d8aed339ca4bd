"""Marks each line of a worker's output with its rank: ``python3 -m determined.launch.wrap_rank``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.ranks.wrap_rank import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
