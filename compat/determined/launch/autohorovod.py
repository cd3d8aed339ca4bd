"""Starts the workers by Horovod where there are several: ``python3 -m determined.launch.autohorovod``."""

import sys

from resolute_launch.layers.autohorovod import main

if __name__ == "__main__":
    sys.exit(main())
