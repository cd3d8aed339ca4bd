"""The entry of the commands `resolute` and `det`.

It is outside the package, because Ctrl-C may arrive during the package's import, which is slow on a slow
disk.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Runs one command and exits, as ``resolute.cli.main.main`` says."""
    try:
        from resolute.cli.main import main as run_command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)  # ``INTERRUPTED`` of the module that was not imported
    run_command()
