"""Copies the output of a script to the log of its trial; it is still printed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO, cast

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.spool.format import Line, Stdtype
from resolute.errors import ResoluteError
from resolute.spool.line_splitter import LineSplitter
from resolute.spool.line_writer import LineWriter

_STATE_SECONDS = 10.0
"""How often a progress bar that lasts is shown."""


class OutputTee:
    """Copies writes to ``sys.stdout`` and ``sys.stderr`` into a spool, and passes them on.

    Args:
        spool: Receives the lines.
        rank: Rank of this process.
        size: Number of processes; with several, each line names its rank.
        clock: Clock for the times of lines.
    """

    def __init__(self, spool: Path, *, rank: int, size: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._writer = LineWriter(spool, name=f"output-rank{rank}", clock=clock)
        prefix = f"[rank={rank}] ".encode() if size > 1 else b""
        self._stdout = _TeeStream(sys.stdout, Stdtype.STDOUT, self._writer, prefix=prefix, clock=clock)
        self._stderr = _TeeStream(sys.stderr, Stdtype.STDERR, self._writer, prefix=prefix, clock=clock)
        self._closed = False

    def install(self) -> None:
        """Begins to copy."""
        sys.stdout, sys.stderr = cast("TextIO", self._stdout), cast("TextIO", self._stderr)

    def close(self) -> None:
        """Ends copying; anyone who put something else in the place of the streams keeps it. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if sys.stdout is self._stdout:
            sys.stdout = self._stdout.original
        if sys.stderr is self._stderr:
            sys.stderr = self._stderr.original
        for stream in (self._stdout, self._stderr):
            stream.finish()
        self._writer.close()


class _TeeStream:
    """A text stream whose writes are copied. All other calls go to the original stream."""

    def __init__(
        self, original: TextIO, stdtype: Stdtype, writer: LineWriter, *, prefix: bytes, clock: Clock
    ) -> None:
        self.original = original
        self._stdtype = stdtype
        self._writer = writer
        self._prefix = prefix
        self._clock = clock
        self._splitter = LineSplitter()
        self._states_at = clock.monotonic() + _STATE_SECONDS
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._finished = False

    def write(self, text: str) -> int:
        count = self.original.write(text)
        # Forked workers print too, and their lock may be held by a thread that they do not have.
        if os.getpid() == self._owner and not self._finished:
            with self._lock:
                self._take(self._splitter.feed(text.encode("utf-8", "replace")))
                if self._clock.monotonic() >= self._states_at:
                    self._states_at = self._clock.monotonic() + _STATE_SECONDS
                    self._take(self._splitter.states())
        return count

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def finish(self) -> None:
        """Copies what has no end of line yet, and no more after it."""
        with self._lock:
            self._finished = True
            self._take(self._splitter.finish())

    def _take(self, texts: Iterable[bytes]) -> None:
        now = self._clock.time()
        lines = [Line(now, self._stdtype, self._prefix + text) for text in texts]
        if lines:
            try:
                self._writer.append_lines(lines)
            except (ResoluteError, OSError):
                # A print must not fail because its copy cannot be kept.
                return

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)
