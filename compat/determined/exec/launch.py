"""Runs the entrypoint of this trial's config: ``python3 -m determined.exec.launch``."""

import sys

from resolute_launch.exec import run_entrypoint

if __name__ == "__main__":
    sys.exit(run_entrypoint.main())

sys.modules[__name__] = run_entrypoint
