"""The distribution that this code is installed from: its name and its version."""

from __future__ import annotations

from functools import cache
from importlib import metadata

NAME = "resolute-train"
"""Packages and commands are called ``resolute``; on package indexes that name belongs to another project."""


@cache
def version() -> str:
    """Returns the installed version, such as ``0.1.0``.

    Raises:
        importlib.metadata.PackageNotFoundError: The code is on the path but was never installed.
    """
    return metadata.version(NAME)
