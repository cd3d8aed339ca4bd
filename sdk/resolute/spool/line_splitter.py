"""Splits the output of a process into lines as they appear on a terminal.

Progress bars redraw themselves with carriage returns, or move the cursor up by escape sequences. Only the
last state is kept: the one that was visible when the line ended. A long-running bar is also written at
intervals. Each rank has its own screen, identified by the prefix that ``wrap_rank`` adds to its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resolute.spool.screen import DRAWS, MOVES, Screen

MAX_LINE = 8 << 10
"""Most bytes of one line; longer ones become several."""

_MOST_SCREENS = 1000
"""Of ranks that draw at the same time: a script may write any prefix."""
_PREFIX = re.compile(rb"\[rank=\d+\] ?")
_COLUMN_ONE = re.compile(rb"\x1b\[[01]?G")
_PARTIAL = re.compile(rb"\x1b(\[[\d;?]{0,9})?\Z")
"""An escape sequence of which the rest may come with the next bytes."""


class LineSplitter:
    """Splits one stream of output into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._held = b""
        self._screens: dict[bytes, Screen] = {}
        """By the prefix of the rank that draws there; none while nothing is drawn over."""
        self._prefix = b""
        """Of the text before the last move."""
        self._moved = b"\n"
        """The last move."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Takes the next bytes and yields the lines that they complete, without their ends."""
        data = self._held + data
        partial = _PARTIAL.search(data)
        self._held = partial[0] if partial else b""
        data = with_returns(data[: len(data) - len(self._held)])
        if self._screens or b"\r" in data or _draws(data) or _draws(self._rest):
            yield from self._draw(data)
        else:
            *lines, rest = data.split(b"\n")
            if lines:
                lines[0] = bytes(self._rest) + lines[0]
                self._rest.clear()
            for line in lines:
                yield from pieces(line) if len(line) > MAX_LINE else (line,)
            self._rest += rest
        while len(self._rest) > MAX_LINE:
            piece, rest = cut(bytes(self._rest))
            # The rest of the line comes from the same rank, and has to say so.
            self._rest[:] = _prefix(piece) + rest
            yield piece

    def states(self) -> Iterator[bytes]:
        """Yields what progress bars show now, as far as it is new since this was last asked."""
        for prefix, screen in self._screens.items():
            for state in screen.changes():
                yield prefix + state

    def finish(self) -> Iterator[bytes]:
        """Yields what is left when the stream has ended."""
        self._rest += self._held
        self._held = b""
        if self._screens:
            self._write(self._moved)
        elif self._rest:
            yield from pieces(bytes(self._rest))
        self._rest.clear()
        yield from self.states()
        self._screens.clear()

    def _draw(self, data: bytes) -> Iterator[bytes]:
        """The same as ``feed`` where rows may be drawn over."""
        begin = 0
        for move in MOVES.finditer(data):
            self._rest += data[begin : move.start()]
            begin = move.end()
            self._moved, moved = move[0], self._moved
            while self._moved == b"\n" and len(self._rest) > MAX_LINE:
                piece, rest = cut(bytes(self._rest))
                self._rest[:] = _prefix(piece) + rest
                yield piece
            screen = self._write(moved)
            for line in screen.move(move):
                yield self._prefix + line
            if len(self._screens) > _MOST_SCREENS:
                oldest = next(iter(self._screens))
                for state in self._screens.pop(oldest).changes():
                    yield oldest + state
        self._rest += data[begin:]
        if self._moved == b"\n" and all(screen.idle for screen in self._screens.values()):
            self._screens.clear()

    def _write(self, moved: bytes) -> Screen:
        """Writes what came after a move on the screen of its rank."""
        prefix = _prefix(self._rest)
        text = bytes(self._rest[len(prefix) :])
        if not prefix and (moved.startswith(b"\x1b") or (moved == b"\r" and not text)):
            # Pieces have prefixes, and end with returns and newlines. Of the two that end a line
            # together, the first has the prefix.
            prefix = self._prefix
        self._rest.clear()
        self._prefix = prefix
        screen = self._screens.get(prefix) or Screen(MAX_LINE - len(prefix))
        if text:
            # What stands there at the end comes in the order in which it was written.
            self._screens.pop(prefix, None)
        self._screens[prefix] = screen
        screen.write(text)
        return screen


def with_returns(data: bytes) -> bytes:
    """Writes each move to the first column as the carriage return that it equals."""
    return _COLUMN_ONE.sub(b"\r", data) if b"\x1b" in data else data


def _draws(data: bytes | bytearray) -> bool:
    return b"\x1b" in data and DRAWS.search(data) is not None


def _prefix(segment: bytes | bytearray) -> bytes:
    match = _PREFIX.match(segment)
    return match[0] if match else b""


def pieces(segment: bytes) -> Iterator[bytes]:
    """Parts a line that is too long into several, each with the prefix of its rank."""
    prefix = _prefix(segment)
    while len(segment) > MAX_LINE:
        piece, rest = cut(segment)
        yield piece
        segment = prefix + rest
    yield segment


def cut(segment: bytes) -> tuple[bytes, bytes]:
    """Parts a line that is too long after at most ``MAX_LINE`` bytes, not within a character."""
    end = MAX_LINE
    # A byte 10xxxxxx continues with a character; four bytes is the longest that UTF-8 has.
    while end > MAX_LINE - 4 and segment[end] & 0xC0 == 0x80:
        end -= 1
    return segment[:end], segment[end:]
