"""Disks that are soon full, and files that may not be read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.backends import missing

_BLOCK_BYTES = 1 << 16


def fill_file_system(folder: Path) -> Path:
    """Fills a file system, and returns the file to remove for there to be space again."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(_BLOCK_BYTES)) == _BLOCK_BYTES:
            pass
    return filler


@contextmanager
def small_file_system(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own that is soon full; skips where none may be mounted."""
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        mounted = subprocess.run(options, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        missing("there is no mount command, so no disk can be filled")
    if mounted.returncode != 0:
        missing(f"no small disk can be mounted here (run as root): {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may read everything, so become somebody who may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
