"""Logs the progress of long uploads and downloads of checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable

from resolute.transfer.progress import Progress, ProgressLines

ProgressFactory = Callable[[str, int], Progress]
"""Makes what counts the bytes of one piece of work: what is done, and how many bytes there are."""
_log = logging.getLogger("resolute.core")


def log_progress(what: str, total: int) -> Progress:
    """Counts bytes, and logs every ten seconds its progress."""
    return ProgressLines(what, total=total, say=lambda line: _log.info("%s", line))


def watch_progress(moved: Callable[[], None]) -> ProgressFactory:
    """Makes what logs progress and calls a function whenever there is some."""

    def watch(what: str, total: int) -> Progress:
        return _Watched(log_progress(what, total), moved)

    return watch


class _Watched:
    """Progress that is logged and passed on to another one."""

    def __init__(self, progress: Progress, moved: Callable[[], None]) -> None:
        self._progress, self._moved = progress, moved

    def advance(self, count: int) -> None:
        """Counts bytes, and tells that there were some."""
        self._moved()
        self._progress.advance(count)
