"""Scripts of an environment that an overlay takes over."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolute_launch.overlays.scripts import copy_scripts

_ANOTHER_USER = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that another user reaches, too."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o777)
        yield Path(made)


def test_programs_that_may_not_be_read_are_left_out(folder: Path) -> None:
    """Such as sudo, on systems whose interpreter lies in /usr/bin."""
    source, target = folder / "bin", folder / "overlay"
    for made in (source, target):
        made.mkdir()
        made.chmod(0o777)
    (source / "sudo").write_bytes(b"program")
    (source / "sudo").chmod(0o111)
    (source / "tool").write_text(f"#!{source}/python3\nprint(1)\n")
    root = os.geteuid() == 0
    if root:  # who may read everything
        os.seteuid(_ANOTHER_USER)
    try:
        copy_scripts(source, target, made_in=source, python=target / "python3")
    finally:
        if root:
            os.seteuid(0)
    assert [path.name for path in target.iterdir()] == ["tool"]
    assert (target / "tool").read_text().endswith("print(1)\n")
