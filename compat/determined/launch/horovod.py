"""Starts the workers by horovodrun: ``python3 -m determined.launch.horovod``."""

import sys

from resolute_launch.layers import horovod

if __name__ == "__main__":
    sys.exit(horovod.main())

sys.modules[__name__] = horovod
