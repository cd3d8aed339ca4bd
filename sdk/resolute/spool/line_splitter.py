"""Splits the output of a process into lines as they appear on a terminal.

Progress bars draw over themselves with carriage returns. Of such a sequence of states only the last is kept:
the one that was visible when the line ended. States of several ranks are kept apart by the prefix that
``wrap_rank`` gives each. A bar that lasts is shown now and then while it lasts. Bars below each other move
the cursor down by newlines and up again by an escape sequence: such newlines end no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LINE = 8 << 10
"""Most bytes of one line; longer ones become several."""

_PREFIX = re.compile(rb"\[rank=\d+\] ?")
_ENDS = re.compile(rb"[\r\n]|\x1b\[(\d*)[AF]")
"""Where something is drawn over, ends, or the cursor moves up."""
_UP = re.compile(rb"\x1b\[\d*[AF]")
_COLUMN_ONE = re.compile(rb"\x1b\[[01]?G")
_ERASED = re.compile(rb"\x1b\[[0-2]?K")
"""Blanks a line, or a part of one."""
_PARTIAL = re.compile(rb"\x1b(\[\d{0,3})?\Z")
"""An escape sequence of which the rest may come with the next bytes."""
_MOST_ROWS = 100
"""Rows that bars below each other take."""


class LineSplitter:
    """One stream of output on its way into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._prefix = b""
        self._states: dict[bytes, bytes] = {}
        self._shown: dict[bytes, bytes] = {}
        self._returned = b""
        self._held = b""
        self._rows_up = 0
        """How far above the lowest bar the cursor stands."""
        self._drawn = False
        """Whether what comes is drawn over the line from its beginning."""
        self._at_margin = True
        """Whether what comes begins at the left."""
        self._standing: set[bytes] = set()
        """Prefixes whose state stands above the cursor."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Takes the next bytes and yields the lines that they complete, without their ends."""
        data = self._held + data
        partial = _PARTIAL.search(data)
        self._held = partial[0] if partial else b""
        data = with_returns(data[: len(data) - len(self._held)])
        moves = b"\r" in data or (b"\x1b" in data and _UP.search(data))
        if moves or self._draws or self._prefix or self._returned:
            yield from self._feed_states(data)
        else:
            *lines, rest = data.split(b"\n")
            if lines:
                lines[0] = bytes(self._rest) + lines[0]
                self._rest.clear()
            for line in lines:
                yield from pieces(line) if len(line) > MAX_LINE else (line,)
            self._rest += rest
            self._at_margin = not self._rest
        while len(self._rest) > MAX_LINE:
            yield self._cut()

    def _feed_states(self, data: bytes) -> Iterator[bytes]:
        """The same where lines may have been drawn over, or continue that were too long."""
        begin = 0
        for match in _ENDS.finditer(data):
            self._rest += data[begin : match.start()]
            begin = match.end()
            segment = self._take()
            at_margin = match[0] == b"\r" or match[0].endswith(b"F")
            if match[1] is not None:
                self._rows_up = min(self._rows_up + int(match[1][:3] or 1), _MOST_ROWS)
                at_margin = at_margin or (self._at_margin and not _ERASED.sub(b"", _text(segment)))
                self._keep_state(segment)
            elif match[0] == b"\n" and self._rows_up and (self._drawn or not _text(segment)):
                self._rows_up -= 1
                self._keep_state(segment)
                self._standing |= {_prefix(segment)} if _text(segment) else set()
            elif match[0] == b"\n":
                self._rows_up = 0
                yield from self._end_bar(segment)
                # Of the two that end a line together, the first has taken the prefix.
                yield from self._end_line(segment or self._returned)
                self._returned = b""
            else:
                if _text(segment).strip():
                    yield from self._end_bar(segment)  # the cursor came down for good
                self._keep_state(segment)
                self._returned = _prefix(segment)
            # A newline that goes down to a row of a bar stands at its beginning.
            self._drawn = at_margin or (match[0] == b"\n" and self._rows_up > 0)
            self._at_margin = at_margin or match[0] == b"\n"
        self._rest += data[begin:]

    @property
    def _draws(self) -> bool:
        """Whether something stands there that may be drawn over."""
        return bool(self._states or self._rows_up or self._drawn)

    def states(self) -> Iterator[bytes]:
        """Yields what progress bars show now, as far as it is new since this was last asked."""
        for prefix, state in self._states.items():
            if self._shown.get(prefix) != state:
                self._shown[prefix] = state
                yield prefix + state

    def finish(self) -> Iterator[bytes]:
        """Yields what is left when the stream has ended."""
        self._rest += self._held
        self._held = b""
        if self._rest or self._prefix:
            segment = self._take()
            if _text(segment):
                self._states.pop(_prefix(segment), None)
                yield from pieces(segment)
        for prefix, state in self._states.items():
            if self._shown.get(prefix) != state:
                yield prefix + state
        self._states.clear()
        self._shown.clear()

    def _take(self) -> bytes:
        segment = self._prefix + bytes(self._rest)
        self._prefix = b""
        self._rest.clear()
        return segment

    def _cut(self) -> bytes:
        """Takes a piece off a line that is not complete and already too long."""
        whole = self._prefix + bytes(self._rest)
        piece, rest = cut(whole)
        # The rest of the line comes from the same rank, and has to say so.
        self._prefix = _prefix(whole)
        self._rest[:] = rest
        return piece

    def _end_line(self, segment: bytes) -> Iterator[bytes]:
        prefix = _prefix(segment)
        state = self._states.pop(prefix, b"")
        shown = self._shown.pop(prefix, None)
        if segment[len(prefix) :]:
            yield from pieces(_ERASED.sub(b"", segment))
        elif not state:
            yield segment
        elif state != shown:
            yield prefix + state

    def _end_bar(self, segment: bytes) -> Iterator[bytes]:
        """Yields the last state of a bar that stays above a line, where the cursor was below it."""
        prefix = _prefix(segment)
        if prefix in self._standing and _text(segment):
            state, shown = self._states.pop(prefix, b""), self._shown.pop(prefix, None)
            if state and state != shown:
                yield prefix + state
        self._standing.discard(prefix)

    def _keep_state(self, segment: bytes) -> None:
        prefix = _prefix(segment)
        text = segment[len(prefix) :]
        if not text:
            return
        if _ERASED.sub(b"", text).strip():
            self._states[prefix] = _ERASED.sub(b"", text)[: MAX_LINE - len(prefix)]
        else:
            # Blanks over a bar take it away.
            self._states.pop(prefix, None)


def with_returns(data: bytes) -> bytes:
    """Writes each move to the first column as the carriage return that it equals."""
    return _COLUMN_ONE.sub(b"\r", data) if b"\x1b" in data else data


def _prefix(segment: bytes) -> bytes:
    match = _PREFIX.match(segment)
    return match[0] if match else b""


def _text(segment: bytes) -> bytes:
    return segment[len(_prefix(segment)) :]


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
