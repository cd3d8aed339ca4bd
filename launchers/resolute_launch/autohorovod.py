"""Runs ``layers/autohorovod`` under its documented name: ``python3 -m resolute_launch.autohorovod``."""

import sys

from resolute_launch.layers import autohorovod

if __name__ == "__main__":
    sys.exit(autohorovod.main())

sys.modules[__name__] = autohorovod
