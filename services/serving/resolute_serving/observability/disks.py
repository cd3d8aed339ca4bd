"""Checks the free space of the disks to which this service and its runs write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

_FULL_BYTES = 4 << 20
"""Free space below which a disk counts as full: databases and spools grow by pieces of this order."""
_REMEDY = "free some space there; nothing that was accepted is lost, and what waits goes on by itself"


def full_disks(paths: Iterable[Path]) -> list[str]:
    """Says which disks are full, with the remedy; each disk once.

    Args:
        paths: Directories that are written to; what is not there yet counts as its parent.
    """
    return [problem for names in by_device(paths).values() if (problem := _problem(names))]


def by_device(paths: Iterable[Path]) -> dict[int, list[Path]]:
    """Directories by the disk that they are on; what is not there yet counts as its parent."""
    found: dict[int, set[Path]] = {}
    for path in paths:
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
        found.setdefault(existing.stat().st_dev, set()).add(existing)
    return {device: sorted(names) for device, names in found.items()}


def full_database(name: str) -> str:
    """Says that a database could not write because the disk of its server is full, with the remedy."""
    return f"the disk that holds the {name} database is full: {_REMEDY}"


def _problem(paths: Sequence[Path]) -> str:
    space = os.statvfs(paths[0])
    free = space.f_bavail * space.f_frsize
    # File systems without a fixed number of files tell 0 of 0.
    if free >= _FULL_BYTES and (space.f_favail or not space.f_files):
        return ""
    what = f"{free / 1e6:.1f} MB free" if free < _FULL_BYTES else "no more files can be created"
    return f"the disk of {', '.join(map(str, paths))} is full ({what}): {_REMEDY}"
