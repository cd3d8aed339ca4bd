"""Builds images as a user does, under names of their own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from support.daemons.containers import Podman
from support.pages.commands import ROOT

_PREFIX = "localhost/resolute-test-"
_SECONDS = 3000.0


@dataclass(frozen=True)
class Built:
    """An image that the command line built.

    Attributes:
        identifier: Its id.
        bom: Its bill of materials.
    """

    identifier: str
    bom: Path


def build_from_nothing(podman: Podman, name: str, folder: Path) -> Built:
    """Builds an image with nothing of earlier builds, in an empty folder."""
    program = ROOT / "tools/image_build/build.py"
    said = podman.command(
        [sys.executable, program, name, "--prefix", _PREFIX, "--cache", folder, "--output", folder],
        timeout=_SECONDS,
    )
    _, identifier, bom = said.split()
    return Built(identifier, Path(bom))
