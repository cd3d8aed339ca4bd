"""The command line, for programs that call it."""

from collections.abc import Sequence
from typing import Any

import resolute.cli.main
from determined._older_names import attribute


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command of `det` and exits.

    Args:
        arguments: The command line without the program; None for this process's own.
    """
    resolute.cli.main.main(arguments, program="det")


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
