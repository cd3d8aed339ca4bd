"""Starts the workers by DeepSpeed's launcher: ``python3 -m determined.launch.deepspeed``."""

import sys

from resolute_launch.layers.deepspeed import main

if __name__ == "__main__":
    sys.exit(main())
