"""Programs that the build runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATE = 1_767_225_600
"""The time of everything in an image, as seconds since 1970: the first day of 2026."""


def run(
    command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None, check: bool = True
) -> str:
    """Runs a program and returns what it wrote to the standard output.

    Raises:
        SystemExit: It failed; the message has its output.
    """
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(DATE), "LC_ALL": "C.UTF-8", **(environment or {})}
    arguments = [str(part) for part in command]
    try:
        done = subprocess.run(arguments, env=variables, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        # What has a path belongs to the virtual environment.
        remedy = "make setup" if "/" in arguments[0] else "tools/install_images.sh"
        raise SystemExit(f"{arguments[0]} is not here: `{remedy}` installs it") from None
    if check and done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout
