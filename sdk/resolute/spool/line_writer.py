"""Records log lines. During a long outage of their service it drops lines rather than block."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.spool.format import LOGS_SUFFIX, Line, Stdtype, encode_line, frame
from resolute.errors import QuotaError
from resolute.spool.line_splitter import MAX_LINE
from resolute.spool.segment import SEGMENT_BYTES, SpoolWriter

DEFAULT_LIMIT = 1 << 30


class LineWriter(SpoolWriter):
    """Appends lines to a spool.

    Args:
        directory: Directory of the spools; it must exist.
        name: Prefix of the source's name.
        limit: Most bytes that may wait for the service. Above it lines are dropped, and one line gives their
            number.
        segment_bytes: Size in bytes at which the next file begins.
        clock: Clock for the times of dropped lines.
    """

    def __init__(
        self,
        directory: Path,
        *,
        name: str = "logs",
        limit: int = DEFAULT_LIMIT,
        segment_bytes: int = SEGMENT_BYTES,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._dropped = 0
        super().__init__(directory, name=name, suffix=LOGS_SUFFIX, segment_bytes=segment_bytes)

    @property
    def dropped(self) -> int:
        """Lines dropped since the last one that was taken."""
        return self._dropped

    def append_lines(self, lines: Iterable[Line]) -> None:
        """Appends lines in order, by one call to the system.

        Raises:
            ForkedProcessError: The writer belongs to the parent process.
            QuotaError: The disk is full; none of the lines was taken, and they count as dropped.
            OSError: The same for another fault of the disk.
        """
        self.check_process()
        given = list(lines)
        with self._lock:
            if self.unacknowledged > self._limit:
                self._dropped += len(given)
                return
            taken = [self._marker(), *given] if self._dropped else given
            data = b"".join(frame(encode_line(part)) for line in taken for part in _split(line))
            try:
                self._rotate_if_full()
                self._current.append(data)
            except (QuotaError, OSError):
                self._dropped += len(given)
                raise
            self._dropped = 0
            self._older = [segment for segment in self._older if segment.unacknowledged]

    def _marker(self) -> Line:
        text = f"{self._dropped} lines were dropped here: the spool was full, or the disk that it is on"
        return Line(time=self._clock.time(), stdtype=Stdtype.PLATFORM, text=text.encode())


def _split(line: Line) -> Iterable[Line]:
    if len(line.text) <= MAX_LINE:
        return (line,)
    starts = range(0, len(line.text), MAX_LINE)
    return [Line(line.time, line.stdtype, line.text[start : start + MAX_LINE]) for start in starts]
