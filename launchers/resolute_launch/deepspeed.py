"""Runs ``layers/deepspeed`` under its documented name: ``python3 -m resolute_launch.deepspeed``."""

import sys

from resolute_launch.layers import deepspeed

if __name__ == "__main__":
    sys.exit(deepspeed.main())

sys.modules[__name__] = deepspeed
