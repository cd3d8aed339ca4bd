"""Where the commands `resolute` and `det` begin.

Outside of the package, since Ctrl-C may come while that is imported, which takes long on a slow disk.
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
