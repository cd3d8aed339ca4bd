"""Runs what the documentation tells to run, once each, in a fresh clone: ``python tools/documented.py``.

Each target of the Makefile, smaller than a night would take it, and each test that runs the blocks of a page.
A table in Markdown says of each when it ran, how long, and what came of it. Blocks that nothing runs are in
it too, with their reason. A run of some keeps the lines of the others from before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build/documented"
_PHONY = re.compile(r"^\.PHONY: (.+)$", re.MULTILINE)
_LEFT_OUT_BLOCK = re.compile(
    r"^<!-- not run: (?P<reason>.+?) -->\n```(?:bash|sh|shell)\n(?P<first>.*)$", re.MULTILINE
)
_PYTEST = ".venv/bin/python -m pytest -q --whole -n 2"
_TIMES = 3.0
"""Times the expected minutes after which a command is ended: machines differ."""


@dataclass(frozen=True)
class Command:
    """What a reader runs.

    Attributes:
        name: What it is called in the table and on the command line.
        minutes: How long it takes on two cores.
        lines: For bash, in the clone.
    """

    name: str
    minutes: int
    lines: str


_CLIENTS, _ENGINES, _IMAGES = (f"tools/install_{name}.sh" for name in ("clients", "engines", "images"))
_SIZES: Mapping[str, str] = {
    "bench": "NAMES=metrics",
    "chaos": "SEEDS=1 KILLS=10",
    "failover": "KILLS=2 PARTITIONS=2",
    "fuzz": "CALLS=500",
    "hangs": "HANGS=2",
    "outage": "ENGINE=container SECONDS=60 OPTIONAL=1",
    "retention": "COMMITS=100",
    "siege": "SIEGE=20",
    "soak": "EXPERIMENTS=50",
    "front": "SAMPLE=1",
}
"""Arguments with which a target is small, or that it cannot do without."""
_INSTALLS: Mapping[str, str] = {
    **dict.fromkeys(("clients", "front"), _CLIENTS),
    **dict.fromkeys(("engines", "outage"), _ENGINES),
    **dict.fromkeys(("images", "images-for-compose", "build-images", "compose-demo"), _IMAGES),
}
"""What installs programs that a target wants, as CONTRIBUTING.md says."""
MINUTES: Mapping[str, int] = {
    **dict.fromkeys(("changelog", "format", "proto", "sbom", "clean"), 1),
    **dict.fromkeys(
        ("azurite", "oidc-provider", "determined-clients", "image-programs", "audit", "docs", "fuzz"), 2
    ),
    **dict.fromkeys(("backends", "openapi", "deployment", "demo", "setup", "page", "check-page", "hangs"), 4),
    **dict.fromkeys(
        ("check", "chaos", "failover", "outage", "retention", "gateway-kills", "siege", "soak"), 8
    ),
    **dict.fromkeys(("bench", "clients", "compose-demo", "front", "page-in-firefox", "pictures"), 10),
    **dict.fromkeys(
        ("build-images", "images-for-compose", "images", "install-lines", "engines", "distributed"), 30
    ),
    **dict.fromkeys(("bench-page", "test"), 60),
}
"""The targets that are run, from short to long."""
LEFT_OUT: Mapping[str, str] = {
    "run-demo": "a part of `demo`",
    "search-on-compose": "a part of `compose-demo`",
    "nightly": "runs what is here, whole, on a machine of its own",
    "newest": "on a machine of its own, each night",
    "debian": "on a machine of its own, each night",
    "turn": "runs suites that are here",
    "documented": "this",
    "release": "makes a release; `tests/unit/tools/test_release.py` makes one in a copy",
    "originals": "wants a folder of programs of others",
    "slow-tests": "measures for hours which tests `make test` samples",
    "lock": "each week, by the workflow Locks",
    "lock-images": "each week, by the workflow Locks",
}
"""The others, with the reason."""
_EACH_CHANGE = ("backends", "setup", "check", "test", "fuzz", "distributed")
_IN_TURN = ("clients", "deployment", "docs", "engines", "openapi")
_NOT_CHOSEN: Mapping[str, str] = {
    **dict.fromkeys(_EACH_CHANGE, "not chosen this time; `.ci/run` runs it for each change"),
    **dict.fromkeys(_IN_TURN, "not chosen this time; `.ci/run` runs it in turn with others"),
}


def targets() -> list[str]:
    """The commands that the Makefile has."""
    (names,) = _PHONY.findall((ROOT / "Makefile").read_text())
    return str(names).split()


def page_tests() -> list[str]:
    """The files of tests of `make test` that run blocks of pages from the pages themselves."""
    found = subprocess.run(
        ["git", "grep", "--files-with-matches", "from support.pages.commands import", "--", "tests/e2e"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.split()


def commands() -> list[Command]:
    """All that is run: `demo` before anything is installed, `clean` at the end."""
    first, last = ("demo", "setup"), "clean"
    between = sorted(MINUTES.keys() - {*first, last}, key=lambda name: (MINUTES[name], name))
    pages = [
        Command(Path(path).stem.replace("test_", "pages-"), 15, f"{_PYTEST} {path}") for path in page_tests()
    ]
    return [*map(_target, (*first, *between)), *pages, _target(last)]


def _target(name: str) -> Command:
    make = " ".join(filter(None, ("make", name, _SIZES.get(name, ""))))
    return Command(name, MINUTES[name], "\n".join(filter(None, (_INSTALLS.get(name, ""), make))))


def left_out_blocks() -> Iterator[tuple[str, str, str]]:
    """The blocks of pages that nothing runs in place: the page, the first line, the reason."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for match in _LEFT_OUT_BLOCK.finditer(page.read_text()):
            yield page.relative_to(ROOT).as_posix(), match["first"], match["reason"]


@dataclass(frozen=True)
class Row:
    """What came of a command."""

    command: Command
    began: datetime
    seconds: float
    exit_code: int | None
    """None if it was ended since it took too long."""
    last: str

    @property
    def text(self) -> str:
        """Its line of the table."""
        result = "passed" if self.exit_code == 0 else f"**failed**: {self.last}"
        if self.exit_code is None:
            minutes = self.command.minutes
            result = f"**ended** after {self.seconds / 60:.0f} minutes, for {minutes} expected: {self.last}"
        shown = self.command.lines.replace("\n", "; ").replace("|", "\\|")
        return f"| `{shown}` | {self.began:%Y-%m-%d %H:%M} | {self.seconds / 60:.1f} | {result} |"


def run(command: Command, clone: Path, *, times: float = _TIMES) -> Row:
    """Runs a command in a clone; its output is in a file of its name beside it.

    Args:
        command: What to run.
        clone: Where.
        times: Times its minutes after which it is ended.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DET_", "RESOLUTE_", "VIRTUAL_ENV", "MAKE", "MFLAGS"))
    }
    began, started = datetime.now(timezone.utc), time.monotonic()
    output = clone.parent / f"{command.name}.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command.lines],
            cwd=clone,
            env={**environment, "RESOLUTE_HOME": str(clone.parent / "home")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_code: int | None = process.wait(times * 60 * command.minutes)
        except subprocess.TimeoutExpired:
            exit_code = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1][:200].replace("|", "\\|") if lines else ""
    return Row(command, began, time.monotonic() - started, exit_code, last)


def table(rows: Mapping[str, str], skipped: Mapping[str, str]) -> str:
    """Writes what came of all as a page.

    Args:
        rows: The line of each command that ran, now or before.
        skipped: Why others did not.
    """
    lines = ["| command | began (UTC) | minutes | result |", "|---|---|---|---|", *rows.values()]
    lines += [
        "",
        "| not run | why |",
        "|---|---|",
        *(f"| `{name}` | {why} |" for name, why in skipped.items() if name not in rows),
    ]
    lines += ["", "| page | block that no test runs in place | why |", "|---|---|---|"]
    lines += [f"| {page} | `{first}` | {reason} |" for page, first, reason in left_out_blocks()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Clones, runs, writes; exits with 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these instead of all")
    parser.add_argument("--minutes", type=int, default=60, help="leave out what takes longer [%(default)s]")
    parser.add_argument(
        "--times",
        type=float,
        default=_TIMES,
        help="end a command after so many times its minutes, for machines with more to do [%(default)s]",
    )
    given = parser.parse_args()
    everything = commands()
    if unknown := set(given.names) - {command.name for command in everything}:
        known = ", ".join(command.name for command in everything)
        parser.error(f"nothing is called {', '.join(sorted(unknown))}: there are {known}")
    chosen = [
        command
        for command in everything
        if (command.name in given.names if given.names else command.minutes <= given.minutes)
    ]
    others = [one.name for one in everything if one not in chosen]
    skipped = {**LEFT_OUT, **{name: _NOT_CHOSEN.get(name, "not chosen this time") for name in others}}
    clone, kept = PLACE / "resolute", PLACE / "rows.json"
    for folder in (clone, PLACE / "home"):
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
    rows: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
    failed: list[str] = []
    for command in chosen:
        row = run(command, clone, times=given.times)
        rows[command.name] = row.text
        sys.stdout.write(f"{row.text}\n")
        sys.stdout.flush()
        if row.exit_code != 0:
            failed.append(command.name)
        # After each: what a machine that is taken away has not run is seen too.
        ordered = {one.name: rows[one.name] for one in everything if one.name in rows}
        kept.write_text(json.dumps(ordered))
        (PLACE / "table.md").write_text(table(ordered, skipped))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; what they printed is in {PLACE}/NAME.log")


if __name__ == "__main__":
    main()
