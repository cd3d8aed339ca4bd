"""Directories of the installed distribution that are put on the path of every run's interpreters."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


INTERPRETER = _HERE / "interpreter"
"""Has what each interpreter of a run reads at its start; last on the path, where it hides no module."""


def compat_path() -> Path:
    """Returns the directory that, first on the path, makes ``import determined`` reach this platform.

    Raises:
        FileNotFoundError: The distribution is damaged.
    """
    # A wheel carries the package inside the launcher; a checkout keeps it beside.
    candidates = (_HERE / "compat", _HERE.parents[1] / "compat")
    for candidate in candidates:
        if (candidate / "determined").is_dir():
            return candidate
    raise FileNotFoundError(
        f"there is no package 'determined' in {candidates[0]} or {candidates[1]}; install resolute again"
    )


if __name__ == "__main__":
    sys.stdout.write(f"{compat_path()}\n")
