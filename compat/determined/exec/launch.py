"""Runs the entrypoint of this trial's config: ``python3 -m determined.exec.launch``."""

import sys

from resolute_launch.exec.run_entrypoint import main

if __name__ == "__main__":
    sys.exit(main())
