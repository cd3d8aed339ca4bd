"""``--include PATH``: adds files to the code that is submitted."""

from __future__ import annotations

from pathlib import Path

import click

includes_option = click.option(
    "-i",
    "--include",
    "includes",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Add a file or directory to the root of the code (repeatable).",
)
