"""Prevents policies from deleting a checkpoint while a process reads it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from resolute.errors import ResoluteError

HOLD_SECONDS = 60.0
"""For how long each call keeps a checkpoint: what a reader that was killed leaves behind ends then."""
_AGAIN_SECONDS = 20.0
_log = logging.getLogger("resolute.core")


@contextlib.contextmanager
def held(hold: Callable[[], object], *, name: str) -> Iterator[None]:
    """Holds a checkpoint for the length of a block.

    Args:
        hold: Keeps it for ``HOLD_SECONDS`` from now on. Where it fails, reading says what is wrong.
        name: What is read, for the log.
    """
    ended = threading.Event()

    def hold_once() -> None:
        try:
            hold()
        except ResoluteError as failure:
            _log.info("%s cannot be held while it is read: %s", name, failure)

    def repeat() -> None:
        while not ended.wait(_AGAIN_SECONDS):
            hold_once()

    hold_once()

    thread = threading.Thread(target=repeat, name="resolute-checkpoint-hold", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
