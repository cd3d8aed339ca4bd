"""Tracebacks with the frames of libraries folded, so that the frames of the user's code stand out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FRAME = re.compile(r'^(?P<indent>\s*)File "(?P<path>[^"]+)", line \d+')
_LIBRARY = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python3[^/]*/|^<frozen |/(?:resolute|resolute_launch|determined)/"
)
_PACKAGE = re.compile(r".*(?:-packages|/python3[^/]*)/(\w+)|/(resolute|resolute_launch|determined)/")


class Folding:
    """Folds a text line by line: replaces each sequence of library frames by one line with their number."""

    def __init__(self) -> None:
        self._folded: list[str] = []
        self._indent = ""
        self._inside = False

    def add(self, line: str) -> Iterator[str]:
        """Takes a line, and yields what can be shown by now. What is no frame stays as it is."""
        frame = _FRAME.match(line)
        if frame is not None:
            self._inside = _LIBRARY.search(frame["path"]) is not None
            self._indent = frame["indent"]
            if self._inside:
                self._folded.append(frame["path"])
                return
        elif self._inside and line.startswith(self._indent + "  "):
            return  # the code of a folded frame
        else:
            self._inside = False
        yield from self.end()
        yield line

    def end(self) -> Iterator[str]:
        """Yields what is held back, where the text ends or is cut."""
        yield from _summary(self._folded, self._indent)
        self._folded = []


def fold(lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines with each run of library frames as one line that counts them.

    Args:
        lines: Any text.
    """
    folding = Folding()
    for line in lines:
        yield from folding.add(line)
    yield from folding.end()


def fold_text(text: str) -> str:
    """Folds a text of several lines."""
    return "\n".join(fold(text.splitlines()))


def _summary(paths: list[str], indent: str) -> Iterator[str]:
    if paths:
        names = dict.fromkeys(match[1] or match[2] for path in paths if (match := _PACKAGE.search(path)))
        of = f" of {', '.join(names)}" if names else ""
        yield f"{indent}… {len(paths)} frame{'s' if len(paths) > 1 else ''}{of}"
