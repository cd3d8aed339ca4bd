"""The notes of a project as a list of named notes: sections of one text, each below a heading ``## NAME``."""

from __future__ import annotations

from collections.abc import Sequence

_HEADING = "## "


def parse(text: str) -> list[dict[str, str]]:
    """Divides a text into notes; what stands before the first heading is a note without a name."""
    notes: list[dict[str, str]] = []
    lines: list[str] = []
    name = ""
    for line in [*text.splitlines(), _HEADING]:
        if not line.startswith(_HEADING):
            lines.append(line)
            continue
        contents = "\n".join(lines).strip("\n")
        if name or contents:
            notes.append({"name": name, "contents": contents})
        name, lines = line.removeprefix(_HEADING).strip(), []
    return notes


def text_of(notes: Sequence[dict[str, str]]) -> str:
    """Joins notes to one text."""
    headings = [f"{_HEADING}{note['name']}\n" if note["name"] else "" for note in notes]
    return "\n\n".join(heading + note["contents"] for heading, note in zip(headings, notes, strict=True))
