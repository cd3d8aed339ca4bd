"""Tracebacks as people want to see them: frames of libraries are folded, so that their own stay in sight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FRAME = re.compile(r'^(?P<indent>\s*)File "(?P<path>[^"]+)", line \d+')
_LIBRARY = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python3[^/]*/|^<frozen |/(?:resolute|resolute_launch|determined)/"
)
_PACKAGE = re.compile(r".*(?:-packages|/python3[^/]*)/(\w+)|/(resolute|resolute_launch|determined)/")


def fold(lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines with each run of library frames as one line that counts them.

    Args:
        lines: Any text; what is no frame of a traceback stays as it is.
    """
    folded: list[str] = []
    indent, inside = "", False
    for line in lines:
        frame = _FRAME.match(line)
        if frame is not None:
            inside = _LIBRARY.search(frame["path"]) is not None
            indent = frame["indent"]
            if inside:
                folded.append(frame["path"])
                continue
        elif inside and line.startswith(indent + "  "):
            continue  # the code of a folded frame
        else:
            inside = False
        yield from _summary(folded, indent)
        folded = []
        yield line
    yield from _summary(folded, indent)


def fold_text(text: str) -> str:
    """Folds a text of several lines."""
    return "\n".join(fold(text.splitlines()))


def _summary(paths: list[str], indent: str) -> Iterator[str]:
    if paths:
        names = dict.fromkeys(match[1] or match[2] for path in paths if (match := _PACKAGE.search(path)))
        of = f" of {', '.join(names)}" if names else ""
        yield f"{indent}… {len(paths)} frame{'s' if len(paths) > 1 else ''}{of}"
