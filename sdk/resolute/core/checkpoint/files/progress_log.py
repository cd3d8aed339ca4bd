"""Checkpoints that are long on their way say so in the log."""

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
