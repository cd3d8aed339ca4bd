"""The README's tour works: every command of it is run, in order, as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-readme"), pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
_SKIPPED = r"(?:^<!-- not run: (?P<reason>.+?) -->\n)?"
_BLOCK = re.compile(_SKIPPED + r"^```(?:bash|sh|shell)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of commands."""

    code: str
    reason: str
    """Why it is not run; empty if it is."""


def blocks() -> list[Block]:
    found = _BLOCK.finditer((ROOT / "README.md").read_text())
    return [Block(match["code"], match["reason"] or "") for match in found]


def script() -> str:
    """All of the tour as one script, so that it keeps its directory; it stops at the first failure."""
    return "\n".join(["set -euxo pipefail", *(block.code for block in blocks() if not block.reason)])


def test_few_blocks_are_left_out_and_each_says_why() -> None:
    left_out = [block for block in blocks() if block.reason]
    assert len(left_out) <= 2
    assert all("make" in block.code for block in left_out)


def test_what_is_left_out_are_targets_that_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for block in blocks() for name in re.findall(r"\bmake (\w+)", block.code)}
    assert named <= targets


def test_the_tour_runs_from_beginning_to_end(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
        "RESOLUTE_HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "OMP_NUM_THREADS": "1",
    }
    tour = script().replace("/tmp/resolute-tour", str(tmp_path / "tour"))
    try:
        result = subprocess.run(
            ["bash", "-c", tour],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=360,
        )
    finally:
        subprocess.run(["resolute", "down"], env=environment, check=False, timeout=90)
    assert result.returncode == 0, result.stdout[-6000:]
    assert (tmp_path / "tour" / "best" / "model.pt").is_file()
    assert result.stdout.count("COMPLETED") >= 5
