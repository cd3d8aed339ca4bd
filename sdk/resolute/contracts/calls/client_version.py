"""The header by which a client sends its version to a server."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

from resolute.contracts import distribution

CLIENT_HEADER = "x-resolute-client"
"""Metadata key of the client's name and version, such as ``sdk/0.1.0``."""
SDK = "sdk"
"""Name of this SDK as a client."""

_RELEASE = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,4})", re.ASCII)


@cache
def own_header() -> str:
    """What this SDK sends under ``CLIENT_HEADER``; empty when it was never installed, so has no version."""
    try:
        return f"{SDK}/{distribution.version()}"
    except metadata.PackageNotFoundError:
        return ""


def release_of(version: str) -> tuple[int, ...] | None:
    """The numbers that a version begins with, without zeros at the end; None when there are none.

    What follows them is left out: ``0.2.0.dev1`` counts as ``0.2.0``.
    """
    match = _RELEASE.match(version)
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
