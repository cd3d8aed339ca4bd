"""The rows on a terminal of one process that can still change.

A row becomes a line of the log once the cursor moves from it to a new row. Redrawn rows above it become lines
again at the same time, or when the current screen is requested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SEQUENCES = rb"\x1b(?:([78])|\[(\d*)([ABEFsu])|\[(\d*)(?:;\d*)?[Hf]|\[([0-3]?)J)"
_ERASES = rb"\x1b\[(?:[0-2]?K|\?\d{1,4}[hl]|\d*(?:;\d*)?r)"
MOVES = re.compile(rb"[\r\n]|" + _SEQUENCES)
"""Ends a piece of text: the cursor goes elsewhere, its place is saved, or other rows are erased."""
DRAWS = re.compile(_SEQUENCES + b"|" + _ERASES)
"""Escape sequences that need a screen. The others, such as colours, are text."""
_ERASED = re.compile(_ERASES)
"""Blanks a row, or a part of it; or is a setting, such as that the cursor is not shown."""
_ERASED_WHOLE = b"\x1b[2K"
_MOST_ROWS = 100
"""Rows that may be drawn anew, and as many at places of the whole screen."""


@dataclass(slots=True)
class _Row:
    """One row."""

    text: bytes = b""
    logged: bytes | None = None
    """What the log has of it."""

    @property
    def changed(self) -> bool:
        return self.text != self.logged and bool(self.text.strip())

    def take(self) -> bytes:
        self.logged = self.text
        return self.text


class Screen:
    """The screen of one process.

    Args:
        width: Most bytes of a row.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._placed: dict[int, _Row] = {}
        """Rows at places of the whole screen, such as a bar at its bottom."""
        self._begin_page()

    def _begin_page(self) -> None:
        self._rows = [_Row()]
        self._redrawn = False
        """Whether another row than the last was written to."""
        self._saved = 0, b""
        self._number, self._row, self._before = 0, self._rows[0], b""
        """Where the cursor is, and what stands before it there."""

    @property
    def idle(self) -> bool:
        """Whether all that stands here is in the log, and nothing is drawn over."""
        last = self._rows[-1]
        return self._row is last and not last.text and not any(self._changed())

    def write(self, text: bytes) -> None:
        """Writes over the row, from the cursor on."""
        if not text:
            return
        self._redrawn |= self._row is not self._rows[-1]
        whole, erased, rest = (self._before + text).rpartition(_ERASED_WHOLE)
        self._row.text = self._before = _ERASED.sub(b"", rest if erased else whole + rest)[: self._width]

    def move(self, move: re.Match[bytes]) -> Iterator[bytes]:
        """Does what ended a piece of text, and yields the lines that are complete then."""
        saving, count, letter, place, erased = move.groups()
        if move[0] == b"\n":
            yield from self._go_down()
        elif move[0] == b"\r":
            self._before = b""
        elif saving == b"7" or letter == b"s":
            self._saved = self._number, self._before
        elif saving == b"8" or letter == b"u":
            self._go_to(*self._saved)
        elif place is not None:
            yield from self._go_to_place(int(place[:4] or 1))
        elif erased is not None:
            yield from self._erase(erased)
        else:
            steps = min(int(count[:3] or 1), _MOST_ROWS)
            self._go_up(steps) if letter in b"AF" else self._go_to(self._number + steps)

    def changes(self) -> Iterator[bytes]:
        """Yields what each row shows now, as far as the log does not have it."""
        for row in self._changed():
            yield row.take()
        self._redrawn = False

    def _changed(self) -> list[_Row]:
        return [row for row in (*self._rows, *self._placed.values()) if row.changed]

    def _go_down(self) -> Iterator[bytes]:
        if self._row is not self._rows[self._number]:
            # From its place on the whole screen to where lines go on.
            self._go_to(len(self._rows) - 1)
        elif self._number < len(self._rows) - 1:
            self._go_to(self._number + 1)
        else:
            for row in self._rows if self._redrawn else self._rows[-1:]:
                if row.changed or (row is self._row and row.logged is None):
                    yield row.take()
            self._redrawn = False
            self._rows = [*self._rows[1 - _MOST_ROWS :], _Row()]
            self._go_to(len(self._rows) - 1)

    def _go_up(self, steps: int) -> None:
        above = max(min(steps - self._number, _MOST_ROWS - len(self._rows)), 0)
        self._rows[:0] = [_Row() for _ in range(above)]
        self._go_to(max(self._number + above - steps, 0))

    def _go_to(self, number: int, before: bytes = b"") -> None:
        self._number = min(number, len(self._rows) - 1)
        self._row = self._rows[self._number]
        self._before = before

    def _go_to_place(self, place: int) -> Iterator[bytes]:
        if place == 1:
            yield from self.changes()
            self._begin_page()
            return
        self._row, self._before = self._placed.setdefault(place, _Row()), b""
        if len(self._placed) > _MOST_ROWS:
            del self._placed[next(iter(self._placed))]

    def _erase(self, what: bytes) -> Iterator[bytes]:
        if what in b"23" and what:
            yield from self.changes()
            self._placed.clear()
            self._begin_page()
        elif what != b"1":
            for row in self._rows[self._number + 1 :]:
                row.text = b""
