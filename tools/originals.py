"""Tries a directory of programs that were written for Determined, and prints a table by release.

    python tools/originals.py DIRECTORY

The directory has a folder for each release. Every YAML file with an entrypoint in it is submitted as it is,
with the folder that it is in. The programs are no part of this repository.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

BIN = Path(sys.executable).parent
_REFUSALS = re.compile(
    r"is not available: |was removed, use |: unknown field|is not configurable|There is no `det"
)
_NOT_HERE = re.compile(
    r"No module named|ConnectionError|Temporary failure in name resolution|Max retries exceeded"
    r"|resources\.slots_per_trial: found \d+; expected at most"
)

_ERROR = re.compile(r"\b\w*(?:Error|Exception)\b: ")


@dataclass(frozen=True)
class Result:
    """The result of one program."""

    release: str
    program: str
    outcome: str
    """``ran``, ``refused``, ``failed``, or ``unknown`` where a library, the network or slots were missing."""
    reason: str = ""


def programs(directory: Path) -> Iterator[tuple[str, Path]]:
    """Finds the configs with an entrypoint, each with its release."""
    for release in sorted(path for path in directory.iterdir() if path.is_dir()):
        for path in sorted(release.rglob("*.y*ml")):
            if _entrypoint(path):
                yield release.name, path


def _entrypoint(path: Path) -> bool:
    try:
        config = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    return isinstance(config, dict) and bool(config.get("entrypoint"))


def judge(release: str, program: str, *, exit_code: int, output: str) -> Result:
    """Derives the result of a program from the exit code of its submission and its log."""
    if exit_code == 0:
        return Result(release, program, "ran")
    for outcome, pattern in (("refused", _REFUSALS), ("unknown", _NOT_HERE)):
        matches = [line.strip() for line in output.splitlines() if pattern.search(line)]
        if matches:
            return Result(release, program, outcome, matches[0])
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return Result(release, program, "failed", (errors or lines or [""])[-1])


def table(results: Iterable[Result]) -> str:
    """Writes the table in Markdown, and what did not run below it."""
    by_release: dict[str, list[Result]] = {}
    for result in results:
        by_release.setdefault(result.release, []).append(result)
    lines = ["| release | ran unmodified | refused by name | failed | unknown |", "|---|---|---|---|---|"]
    for release, tried in by_release.items():
        counts = [
            sum(program.outcome == name for program in tried)
            for name in ("ran", "refused", "failed", "unknown")
        ]
        lines.append(f"| {release} | {counts[0]} of {len(tried)} | {counts[1]} | {counts[2]} | {counts[3]} |")
    lines += [
        f"- {program.release} {program.program}: {program.outcome}: {program.reason}"
        for tried in by_release.values()
        for program in tried
        if program.outcome != "ran"
    ]
    return "\n".join(lines)


def _tried(release: str, path: Path, directory: Path, minutes: float) -> Result:
    program = str(path.relative_to(directory / release))
    command = [str(BIN / "det"), "experiment", "create", path.name, ".", "--follow-first-trial"]
    try:
        ended = subprocess.run(
            command,
            cwd=path.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=minutes * 60,
        )
    except subprocess.TimeoutExpired:
        return Result(release, program, "unknown", f"it ran for more than {minutes:g} minutes")
    return judge(release, program, exit_code=ended.returncode, output=ended.stdout + ended.stderr)


def main() -> None:
    """Starts a cluster of its own, tries the programs one after the other, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--minutes", type=float, default=10, help="for each program")
    options = parser.parse_args()
    directory = options.directory.resolve()
    with tempfile.TemporaryDirectory() as home:
        up = [str(BIN / "resolute"), "up", "--detach", "--slots", "2"]
        os.environ["RESOLUTE_HOME"] = home
        subprocess.run(up, check=True, capture_output=True)
        try:
            print(
                table(
                    _tried(release, path, directory, options.minutes) for release, path in programs(directory)
                )
            )
        finally:
            subprocess.run([str(BIN / "resolute"), "down"], check=False, capture_output=True)


if __name__ == "__main__":
    main()
