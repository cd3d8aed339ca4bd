"""Runs ``ranks/wrap_rank`` under its documented name: ``python3 -m resolute_launch.wrap_rank``."""

import sys

from resolute_launch.ranks import wrap_rank

if __name__ == "__main__":
    sys.exit(wrap_rank.main())

sys.modules[__name__] = wrap_rank
