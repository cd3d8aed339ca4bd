"""Builds images as `make images` does, under names of their own."""

from __future__ import annotations

import sys
from pathlib import Path

from support.containers import Podman
from support.page_commands import ROOT

PREFIX = "localhost/resolute-test-"


def build_image(podman: Podman, name: str, cache: Path) -> str:
    """Builds one; returns its id."""
    program = ROOT / "tools/image_build/build.py"
    output = ROOT / "build/images"
    said = podman.command(
        [sys.executable, program, name, "--prefix", PREFIX, "--cache", cache, "--output", output],
        timeout=900.0,
    )
    return said.split()[1]
