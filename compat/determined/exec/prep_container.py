"""Finds a container of a run prepared: ``python3 -m determined.exec.prep_container``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.exec.prep_container import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
