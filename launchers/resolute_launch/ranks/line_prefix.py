"""Prefixes each line of output with its rank."""

from __future__ import annotations

from collections import deque

from resolute.spool.line_splitter import MAX_LINE, cut, with_returns


class Prefixer:
    """Prefixes each piece of output that ends in a newline or a carriage return with its rank.

    A newline that arrives after a carriage return is also a piece: if several ranks write to one pipe,
    nothing else shows whose line it ends.

    Args:
        rank: The rank.
        kept: Number of the latest pieces to keep.
        whole_lines: Whether each piece becomes a line, even if it ends in a carriage return.
    """

    def __init__(self, rank: int, *, kept: int = 0, whole_lines: bool = False) -> None:
        self._whole_lines = whole_lines
        self.latest: deque[bytes] = deque(maxlen=kept)
        self._prefix = b"[rank=%d] " % rank
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Takes the next bytes and returns what is whole, prefixes added."""
        data = with_returns(self._rest + data)
        pieces = data.splitlines(keepends=True)
        self._rest = pieces.pop() if pieces and pieces[-1][-1:] not in b"\r\n" else b""
        while len(self._rest) > MAX_LINE:
            piece, self._rest = cut(self._rest)
            pieces.append(piece + b"\n")
        if self._whole_lines:
            pieces = [piece[:-1] + b"\n" if piece.endswith(b"\r") else piece for piece in pieces]
        self.latest.extend(pieces)
        return b"".join(self._prefix + piece for piece in pieces)

    def finish(self) -> bytes:
        """Returns what is left when the output has ended."""
        rest, self._rest = self._rest, b""
        self.latest.append(rest)
        return self._prefix + rest + b"\n" if rest else b""
