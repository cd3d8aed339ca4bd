"""Starts several workers by Horovod: ``python3 -m determined.launch.autohorovod``."""

import sys

from resolute_launch.layers.autohorovod import main

if __name__ == "__main__":
    sys.exit(main())
