"""Marks each line of a worker's output with its rank: ``python3 -m determined.launch.wrap_rank``."""

import sys

from resolute_launch.ranks import wrap_rank

if __name__ == "__main__":
    sys.exit(wrap_rank.main())

sys.modules[__name__] = wrap_rank
