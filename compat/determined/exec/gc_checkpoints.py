"""Removes checkpoints as ``resolute checkpoint gc`` does: ``python3 -m determined.exec.gc_checkpoints``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute.cli.main import run


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(run(["checkpoint", "gc", *sys.argv[1:]], program="resolute"))
