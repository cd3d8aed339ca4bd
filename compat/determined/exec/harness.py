"""Runs a Trial class: ``python3 -m determined.exec.harness module:Class``."""

import sys

from resolute_launch.exec import harness

if __name__ == "__main__":
    sys.exit(harness.main())

sys.modules[__name__] = harness
