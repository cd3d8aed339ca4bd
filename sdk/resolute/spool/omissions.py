"""Values that are left out of reports: a counted warning of each kind, or an error in the call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.contracts.unicode_text import valid_unicode

LEFT_OUT_SUFFIX = ".left-out"
"""Ends the names of files that hold how much was left out, by kind."""
_MOST_KINDS = 100
_OTHERS = "of further kinds"
_LONGEST = 200
"""Characters that are kept of a kind."""


class Omissions(Protocol):
    """Receives values that cannot be recorded."""

    def leave_out(self, kind: str, error: Exception) -> None:
        """Takes what is wrong, which either ends here or is raised.

        Args:
            kind: What the counted warnings have in common, such as ``values of type complex``.
            error: Names the object, what is wrong and the remedy.
        """

    def finish(self) -> None:
        """Writes the notes that are due."""


class CountedWarnings:
    """Warns at once of the first value of each kind, and at the end of the number of the others.

    Args:
        say: Writes a line to the log.
        file: File for the counts, written at the first of each kind and at the end; None for no file.
    """

    def __init__(self, say: Callable[[str], None], *, file: Path | None = None) -> None:
        self._say = say
        self._file = file
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._noted: dict[str, int] = {}

    def leave_out(self, kind: str, error: Exception) -> None:
        """Counts one."""
        with self._lock:
            if kind not in self._counts and len(self._counts) >= _MOST_KINDS:
                kind = _OTHERS
            self._counts[kind] = self._counts.get(kind, 0) + 1
            if kind in self._noted:
                return
            self._noted[kind] = 1
            self._save()
        self._say(f"left out of the reports: {error}")

    def finish(self) -> None:
        """Writes for each kind how many more there were since its last note."""
        with self._lock:
            more = {kind: count - self._noted[kind] for kind, count in self._counts.items()}
            self._noted = dict(self._counts)
            if any(more.values()):
                self._save()
        for kind, number in more.items():
            if number:
                self._say(f"{number} more left out of the reports: {kind}")

    def _save(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # the log says it in any case
                write_json(self._file, self._counts)


class Raised:
    """Raises an error in the call whose value cannot be recorded."""

    def leave_out(self, kind: str, error: Exception) -> None:
        """Raises the error."""
        raise error

    def finish(self) -> None:
        """Nothing was kept back."""


def read_left_out(directory: Path) -> tuple[str, ...]:
    """Reads what the processes of a run left out of their reports: for people, one text for each kind.

    Args:
        directory: Where their spools lie.
    """
    counts: dict[str, int] = {}
    for path in sorted(directory.glob(f"*{LEFT_OUT_SUFFIX}")):
        # A script may write here, too.
        with contextlib.suppress(OSError, OverflowError, TypeError, ValueError):
            for kind, count in (read_json(path) or {}).items():
                shown = valid_unicode(kind[:_LONGEST])
                counts[shown] = counts.get(shown, 0) + int(count)
    return tuple(f"{kind} ({count})" for kind, count in list(counts.items())[:_MOST_KINDS])
