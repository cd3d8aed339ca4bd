"""Runs ``exec/harness`` under its documented name: ``python3 -m resolute_launch.harness``."""

import sys

from resolute_launch.exec import harness

if __name__ == "__main__":
    sys.exit(harness.main())

sys.modules[__name__] = harness
