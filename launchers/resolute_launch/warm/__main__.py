"""Runs a parked process: ``python -m resolute_launch.warm DIRECTORY [PADDING]``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Taken before anything else is imported: a script gets the path that a new interpreter has.
    del sys.path[0]
    from resolute_launch.warm.parked import park

    park(sys.argv[1])
