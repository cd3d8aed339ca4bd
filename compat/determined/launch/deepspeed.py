"""Starts the workers by DeepSpeed's launcher: ``python3 -m determined.launch.deepspeed``."""

import sys

from resolute_launch.layers import deepspeed

if __name__ == "__main__":
    sys.exit(deepspeed.main())

sys.modules[__name__] = deepspeed
