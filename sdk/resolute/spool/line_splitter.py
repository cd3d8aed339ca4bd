"""Cuts the output of a process into lines as a person would have seen them.

Progress bars draw over themselves with carriage returns. Of such a run of states only the last is worth
keeping: the one that stood there when the line ended. States of several ranks are kept apart by the prefix
that ``wrap_rank`` gives each. A bar that lasts is shown now and then while it lasts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LINE = 8 << 10
"""Most bytes of one line; longer ones become several."""

_PREFIX = re.compile(rb"\[rank=\d+\] ?")
_ENDS = re.compile(rb"[\r\n]")


class LineSplitter:
    """One stream of output on its way into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._prefix = b""
        self._states: dict[bytes, bytes] = {}
        self._shown: dict[bytes, bytes] = {}
        self._returned = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Takes the next bytes and yields the lines that they complete, without their ends."""
        if b"\r" in data or self._states or self._prefix or self._returned:
            yield from self._feed_states(data)
        else:
            *lines, rest = data.split(b"\n")
            if lines:
                lines[0] = bytes(self._rest) + lines[0]
                self._rest.clear()
            for line in lines:
                yield from _pieces(line) if len(line) > MAX_LINE else (line,)
            self._rest += rest
        while len(self._rest) > MAX_LINE:
            yield self._cut()

    def _feed_states(self, data: bytes) -> Iterator[bytes]:
        """The same where lines may have been drawn over, or continue that were too long."""
        begin = 0
        for match in _ENDS.finditer(data):
            self._rest += data[begin : match.start()]
            begin = match.end()
            segment = self._take()
            if match[0] == b"\n":
                # Of the two that end a line together, the first has taken the prefix.
                yield from self._end_line(segment or self._returned)
                self._returned = b""
            else:
                self._keep_state(segment)
                self._returned = _prefix(segment)
        self._rest += data[begin:]

    def states(self) -> Iterator[bytes]:
        """Yields what progress bars show now, as far as it is new since this was last asked."""
        for prefix, state in self._states.items():
            if self._shown.get(prefix) != state:
                self._shown[prefix] = state
                yield prefix + state

    def finish(self) -> Iterator[bytes]:
        """Yields what is left when the stream has ended."""
        if self._rest or self._prefix:
            segment = self._take()
            if _text(segment):
                self._states.pop(_prefix(segment), None)
                yield from _pieces(segment)
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
            yield from _pieces(segment)
        elif not state:
            yield segment
        elif state != shown:
            yield prefix + state

    def _keep_state(self, segment: bytes) -> None:
        prefix = _prefix(segment)
        text = segment[len(prefix) :]
        if not text:
            return
        if text.strip():
            self._states[prefix] = text[: MAX_LINE - len(prefix)]
        else:
            # Blanks over a bar take it away.
            self._states.pop(prefix, None)


def _prefix(segment: bytes) -> bytes:
    match = _PREFIX.match(segment)
    return match[0] if match else b""


def _text(segment: bytes) -> bytes:
    return segment[len(_prefix(segment)) :]


def _pieces(segment: bytes) -> Iterator[bytes]:
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
