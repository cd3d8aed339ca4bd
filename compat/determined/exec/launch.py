"""Runs the entrypoint of this trial's config: ``python3 -m determined.exec.launch``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.exec.run_entrypoint import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
