"""The commands that pages show, as tests run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SKIPPED = r"(?:^<!-- not run: (?P<reason>.+?) -->\n)?"
_BLOCK = re.compile(_SKIPPED + r"^```(?:bash|sh|shell)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of commands."""

    code: str
    reason: str
    """Why it is not run; empty if it is."""


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, which is named from the root of the project."""
    found = _BLOCK.finditer((ROOT / page).read_text())
    return [Block(match["code"], match["reason"] or "") for match in found]


def script_of(page: str) -> str:
    """All of a page's blocks as one script, so that it keeps its directory; it stops at the first failure."""
    blocks = [block.code for block in blocks_of(page) if not block.reason]
    return "\n".join(["set -euxo pipefail", *blocks])


def run_script(script: str, folder: Path, *, timeout: float) -> str:
    """Runs a script beside a copy of the examples, with a home of its own, and leaves no cluster running.

    Args:
        script: For bash.
        folder: An empty directory.
        timeout: Seconds.

    Returns:
        What it said; one that fails fails the test.
    """
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
        "RESOLUTE_HOME": str(folder / "home"),
        "XDG_DATA_HOME": str(folder / "data"),
        "OMP_NUM_THREADS": "1",
    }
    try:
        result = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
        )
    finally:
        subprocess.run(["resolute", "down"], env=environment, check=False, timeout=90)
    assert result.returncode == 0, result.stdout[-6000:]
    return result.stdout
