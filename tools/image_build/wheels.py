"""Wheels of locked packages, and Resolute's own, fetched by this machine's pip with its settings."""

from __future__ import annotations

import sys
from pathlib import Path

from image_build.commands import ROOT, run

PYTHON = (3, 11)
"""Debian bookworm's."""


def fetch(lock: Path, folder: Path) -> None:
    """Downloads wheels by a lock, which are checked by their digests.

    Raises:
        SystemExit: This Python resolves for another version than the images'.
    """
    if sys.version_info[:2] != PYTHON:
        wanted = ".".join(map(str, PYTHON))
        raise SystemExit(
            f"the images have Python {wanted}: build them with that, PYTHON=python{wanted} make images"
        )
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--only-binary=:all:",
            "--require-hashes",
            "--no-deps",
            "--dest",
            folder,
            "--requirement",
            lock,
        ]
    )


def build_own(folder: Path) -> Path:
    """Builds the wheel of this checkout; returns it."""
    run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT])
    (wheel,) = folder.glob("*.whl")
    return wheel
