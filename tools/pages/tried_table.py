"""Lists the programs of ``tests/compat/scripts`` in docs/from-determined.md; ``--check`` compares.

The first line of a program's config says of which releases it uses the calls, the docstring of its script
what it tries. Tests run each of them as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from generated_section import ROOT, GeneratedSection

SCRIPTS = ROOT / "tests/compat/scripts"
RELEASES = ("0.12", "0.17", "0.19", "0.23", "0.30", "0.35", "0.38")
SECTION = GeneratedSection(
    "docs/from-determined.md",
    "<!-- tried: written by tools/pages/tried_table.py -->",
    "<!-- end of tried -->",
    remedy="make proto",
)
_FIRST_LINE = re.compile(r"# Releases: (0\.\d+)(?: to (0\.\d+))?\n")


@dataclass(frozen=True)
class Program:
    """One of them."""

    name: str
    first: str
    last: str
    subject: str
    """What it tries, as its script says it."""

    @property
    def releases(self) -> Sequence[str]:
        """Those whose calls it uses."""
        return RELEASES[RELEASES.index(self.first) : RELEASES.index(self.last) + 1]


def programs() -> list[Program]:
    """All of them, by name."""
    return [_program(config) for config in sorted(SCRIPTS.glob("*/config.yaml"))]


def table(found: Sequence[Program]) -> str:
    """How many there are of each release, and what each is."""
    lines = ["| release | ran as they are | refused by name |", "|---|---|---|"]
    for release in RELEASES:
        count = sum(release in program.releases for program in found)
        lines.append(f"| {release} | {count} of {count} | 0 |")
    lines += ["", "| program | releases | what it tries |", "|---|---|---|"]
    lines += [
        f"| `{program.name}` | {' to '.join(dict.fromkeys((program.first, program.last)))} "
        f"| {program.subject} |"
        for program in found
    ]
    return "\n".join(lines)


def _program(config: Path) -> Program:
    written = _FIRST_LINE.match(config.read_text())
    if written is None:
        raise ValueError(f"{config}: the first line must be `# Releases: 0.A` or `# Releases: 0.A to 0.B`")
    docstrings = (
        ast.get_docstring(ast.parse(path.read_text())) for path in sorted(config.parent.glob("*.py"))
    )
    subject = next(text for text in docstrings if text)
    return Program(config.parent.name, written[1], written[2] or written[1], subject.splitlines()[0])


if __name__ == "__main__":
    SECTION.update(table(programs()))
