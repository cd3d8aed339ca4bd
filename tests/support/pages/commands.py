"""The commands that pages show, as tests run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.calls.typed_answers import run_at_terminal

ROOT = Path(__file__).parents[3]
_COMMANDS = r"(?:^<!-- not run: (?P<reason>.+?) -->\n)?^```(?:bash|sh|shell)\n(?P<code>.*?)^```$"
_FILE = r"^<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<text>.*?)^```$"
_BLOCK = re.compile(f"{_COMMANDS}|{_FILE}", re.MULTILINE | re.DOTALL)
_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of commands, or one that is to be kept in a file: then the command that does so."""

    code: str
    reason: str
    """Why it is not run; empty if it is."""


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, which is named from the root of the project."""
    found = _BLOCK.finditer((ROOT / page).read_text())
    return [Block(match["code"] or _kept(match), match["reason"] or "") for match in found]


def yaml_of(page: str, *, having: str) -> list[str]:
    """The blocks of YAML of a page that have some text."""
    return [text for text in _YAML.findall((ROOT / page).read_text()) if having in text]


def file_of(page: str, name: str) -> str:
    """The text of a file that a page has its reader keep."""
    (text,) = [match["text"] for match in _BLOCK.finditer((ROOT / page).read_text()) if match["name"] == name]
    return text


def _kept(match: re.Match[str]) -> str:
    name, end = match["name"], "END_OF_THE_FILE"
    return f"mkdir -p \"$(dirname {name})\"\ncat > {name} <<'{end}'\n{match['text']}{end}\n"


def script_of(page: str) -> str:
    """All of a page's blocks as one script, so that it keeps its directory; it stops at the first failure."""
    blocks = [block.code for block in blocks_of(page) if not block.reason]
    return "\n".join(["set -euxo pipefail", *blocks])


def run_script(
    script: str,
    folder: Path,
    *,
    timeout: float,
    variables: Mapping[str, str] | None = None,
    answers: Mapping[str, str] | None = None,
) -> str:
    """Runs a script beside a copy of the examples, with a home of its own, and leaves no cluster running.

    Args:
        script: For bash.
        folder: An empty directory.
        timeout: Seconds.
        variables: More of the environment.
        answers: What a person types at a terminal, by the end of the question; without, there is no terminal.

    Returns:
        What it said; one that fails fails the test.
    """
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_"))}
    environment |= {
        "RESOLUTE_HOME": str(folder / "home"),
        "XDG_DATA_HOME": str(folder / "data"),
        "OMP_NUM_THREADS": "1",
        **(variables or {}),
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = ["bash", "-c", script]
    try:
        if answers is not None:
            code, said = run_at_terminal(command, folder, environment, answers=answers, timeout=timeout)
        else:
            code, said = _run(command, folder, environment, timeout=timeout)
    finally:
        subprocess.run(["resolute", "down"], env=environment, check=False, timeout=90)
    assert code == 0, said[-6000:]
    return said


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, timeout: float
) -> tuple[int, str]:
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout,
    )
    return result.returncode, result.stdout
