"""Runs a Trial class: ``python3 -m determined.exec.harness module:Class``."""

import sys

from resolute_launch.exec.harness import main

if __name__ == "__main__":
    sys.exit(main())
