"""Marks each line of a worker's output with its rank: ``python3 -m determined.launch.wrap_rank``."""

import sys

from resolute_launch.ranks.wrap_rank import main

if __name__ == "__main__":
    sys.exit(main())
