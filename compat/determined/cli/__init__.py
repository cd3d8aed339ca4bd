"""The command line, for programs that call it."""

from collections.abc import Sequence

import resolute.cli.main


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command of `det` and exits.

    Args:
        arguments: The command line without the program; None for this process's own.
    """
    resolute.cli.main.main(arguments, program="det")
