"""Removes checkpoints as ``resolute checkpoint gc`` does: ``python3 -m determined.exec.gc_checkpoints``."""

import sys

from resolute.cli.main import run

if __name__ == "__main__":
    sys.exit(run(["checkpoint", "gc", *sys.argv[1:]], program="resolute"))
