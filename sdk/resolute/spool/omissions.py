"""What is left out of reports: a counted warning of each kind, or an error in the call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_MOST_KINDS = 100
_OTHERS = "of further kinds"


class Omissions(Protocol):
    """Hears of what cannot be recorded."""

    def leave_out(self, kind: str, error: Exception) -> None:
        """Takes what is wrong, which either ends here or is raised.

        Args:
            kind: What the counted warnings have in common, such as ``values of type complex``.
            error: Names the object, what is wrong and the remedy.
        """

    def finish(self) -> None:
        """Says what is still to be said."""


@dataclass(slots=True)
class _Count:
    more: int = 0


class CountedWarnings:
    """Says the first of each kind at once, and at the end how many more there were.

    Args:
        say: Puts a line into the log.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._counts: dict[str, _Count] = {}

    def leave_out(self, kind: str, error: Exception) -> None:
        """Counts one."""
        with self._lock:
            if kind not in self._counts and len(self._counts) >= _MOST_KINDS:
                kind = _OTHERS
            count = self._counts.get(kind)
            if count is not None:
                count.more += 1
                return
            self._counts[kind] = _Count()
        self._say(f"left out of the reports: {error}")

    def finish(self) -> None:
        """Says of each kind how many more there were since this was last said."""
        with self._lock:
            more = {kind: count.more for kind, count in self._counts.items() if count.more}
            for count in self._counts.values():
                count.more = 0
        for kind, number in more.items():
            self._say(f"{number} more left out of the reports: {kind}")


class Raised:
    """Raises what is wrong in the call that caused it."""

    def leave_out(self, kind: str, error: Exception) -> None:
        """Raises the error."""
        raise error

    def finish(self) -> None:
        """Nothing was kept back."""
