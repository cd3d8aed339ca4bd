"""Starts the workers by horovodrun: ``python3 -m determined.launch.horovod``."""

import sys

from resolute_launch.layers.horovod import main

if __name__ == "__main__":
    sys.exit(main())
