"""Progress of long transfers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Protocol, final

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.sizes import human_size

_INTERVAL_SECONDS = 10.0


class Progress(Protocol):
    """Called by several threads with the number of transferred bytes."""

    def advance(self, count: int) -> None:
        """Counts some more bytes, or, below zero, takes back some that must be moved again."""


@final
class NoProgress:
    """Progress that shows nothing."""

    def advance(self, count: int) -> None:
        """Does nothing."""


NO_PROGRESS = NoProgress()


@final
class ProgressLines:
    """Writes its progress in a line at intervals; a shorter transfer writes none.

    Args:
        what: The transfer, such as ``checkpoint 12 is uploaded``.
        total: Total number of bytes; zero if unknown.
        say: Called with each line.
        interval: Seconds between two lines.
        clock: Clock for the interval.
    """

    def __init__(
        self,
        what: str,
        *,
        total: int,
        say: Callable[[str], None],
        interval: float = _INTERVAL_SECONDS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._what = what
        self._total = total
        self._say = say
        self._interval = interval
        self._clock = clock
        self._lock = threading.Lock()
        self._done = 0
        self._began = self._last_line_at = clock.monotonic()

    def advance(self, count: int) -> None:
        """Counts bytes, and says a line if it is time for one."""
        with self._lock:
            self._done += count
            now = self._clock.monotonic()
            if now - self._last_line_at < self._interval:
                return
            self._last_line_at = now
            line = self._line(now - self._began)
        self._say(line)

    def _line(self, seconds: float) -> str:
        rate = self._done / seconds
        moved = human_size(self._done)
        if not self._total:
            return f"{self._what}: {moved} so far, {human_size(rate)}/s"
        left = max(0, self._total - self._done)
        remaining = f", about {left / rate:.0f} s left" if rate > 0 else ""
        share = f"{self._done / self._total:.0%}"
        return (
            f"{self._what}: {moved} of {human_size(self._total)} ({share}), {human_size(rate)}/s{remaining}"
        )


@contextlib.contextmanager
def count_attempt(progress: Progress) -> Iterator[Callable[[int], None]]:
    """Counts the bytes of one attempt; those of an attempt that fails count for nothing.

    Args:
        progress: What counts.

    Yields:
        Takes numbers of bytes.
    """
    moved = 0

    def count(bytes_: int) -> None:
        nonlocal moved
        moved += bytes_
        progress.advance(bytes_)

    try:
        yield count
    except BaseException:
        progress.advance(-moved)
        raise
