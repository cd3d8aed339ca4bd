"""What pages tell to install, taken literally in an empty environment and a clone of this commit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pages.commands import ROOT, blocks_of

REPOSITORY = "https://github.com/resolute-train/resolute"
INSTALLS = re.compile(r"^(?:\S*/)?(pip install '(?:\.|resolute-train).*?) *(?:#.*)?$", re.MULTILINE)
"""A line of a page; it may name an environment that only its reader has."""
SERVES = re.compile(r"workstation|server")


def installations() -> dict[str, str]:
    """What readers of pages run, by the pages that say so."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "docs").glob("*.md")):
        blocks = [block.code for block in blocks_of(f"docs/{path.name}") if block.reason]
        lines = [line for block in blocks for line in INSTALLS.findall(block)]
        if path.name == "install.md":
            # Each block is a way of its own, but that the wheel of one is what the next finds.
            ways = [block for block in blocks if "pip install" in block]
            wheel = next(i for i, way in enumerate(ways) if "--wheel" in way)
            found |= {f"install-{i}": way for i, way in enumerate(ways[:wheel])}
            found["install-wheel"] = "".join(ways[wheel:])
        elif lines:
            found[path.stem] = "\n".join(lines) + "\n"
    pages: dict[str, list[str]] = {}
    for page, script in found.items():
        pages.setdefault(script, []).append(page)
    return {" ".join(names): script for script, names in pages.items()}


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A clone, in which an empty environment lies; no cluster of it is left, nor its gigabytes."""
    _run(f"git clone --quiet {REPOSITORY} resolute && python3 -m venv resolute/.venv", tmp_path)
    folder = tmp_path / "resolute"
    try:
        yield folder
    finally:
        if (folder / ".venv/bin/resolute").exists():
            _run(".venv/bin/resolute down", folder)
        shutil.rmtree(folder)


def test_every_way_in_is_found() -> None:
    pages = {page for pages in installations() for page in pages.split()}
    assert {"workstation", "cluster", "from-determined", "services", "install-0", "install-wheel"} <= pages


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", installations())
def test_what_pages_tell_to_install_serves(page: str, clone: Path) -> None:
    script = installations()[page]
    # The clone is made already, with an environment: by the page's own lines, where it has them.
    script = script.replace(f"git clone {REPOSITORY} && cd resolute\n", "")
    _run(f". .venv/bin/activate\n{script}", clone)
    said = _run(". .venv/bin/activate; resolute version; pip check", clone)
    assert said.startswith("client ")
    assert "No broken requirements found" in said
    if SERVES.search(script):
        said = _run(
            ". .venv/bin/activate; resolute up --detach --slots 1; resolute status; resolute doctor", clone
        )
        assert "slot 0 " in said


def _run(script: str, folder: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_", "VIRTUAL_"))}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={
            **environment,
            "RESOLUTE_HOME": str(folder / "home"),
            # The address that pages name leads here.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.file://{ROOT}.insteadOf",
            "GIT_CONFIG_VALUE_0": REPOSITORY,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-6000:]}"
    return done.stdout
