"""Runs the supervisor of one run: ``python3 -m resolute_launch.supervisor``."""

import sys

from resolute_launch.processes.first_process import leave_first_process


def main() -> int:
    """Runs it, beside the first process where it runs in a container."""
    leave_first_process()
    # Only the process that goes on needs all of this.
    from resolute_launch.supervisor.main import main as supervise

    return supervise()


sys.exit(main())
