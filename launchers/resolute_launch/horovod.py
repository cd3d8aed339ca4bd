"""Runs ``layers/horovod`` under its documented name: ``python3 -m resolute_launch.horovod``."""

import sys

from resolute_launch.layers import horovod

if __name__ == "__main__":
    sys.exit(horovod.main())

sys.modules[__name__] = horovod
